//! Tasks of Ansible: `ansible.posix.sysctl` for sysctls, a networkd drop-in by `ansible.builtin.copy` for routes, for which no module
//! has attributes.

use super::{by_route, header, networkd, sysctls};
use std::fmt::Write;
use thalweg_model::{PlannedChange, TunePlan};

pub(super) fn write(plan: &TunePlan, changes: &[&PlannedChange]) -> String {
    let mut text = header(plan);
    for (name, change) in sysctls(changes) {
        // Several numbers are one string.
        let _ = write!(
            text,
            "- name: {name}\n  ansible.posix.sysctl:\n    name: {name}\n    value: \"{}\"\n    sysctl_file: /etc/sysctl.d/90-thalweg.conf\n    sysctl_set: true\n    reload: true\n",
            change.to
        );
    }
    for (route, attributes) in by_route(changes) {
        let dev = route.dev.as_deref().unwrap_or("DEVICE");
        let _ = write!(
            text,
            "- name: route {} of {dev}\n  ansible.builtin.copy:\n    dest: /etc/systemd/network/50-{dev}.network.d/thalweg.conf\n    mode: \"0644\"\n    content: |\n",
            route.to
        );
        for line in networkd::section(route, &attributes).lines() {
            let _ = writeln!(text, "      {line}");
        }
        text += "  notify: networkctl reload\n";
    }
    text
}
