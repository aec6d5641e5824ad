//! Tasks of Ansible: `ansible.posix.sysctl` for sysctls, a networkd drop-in by `ansible.builtin.copy` for routes, for which no module
//! has attributes.

use super::{Format, by_way, header, networkd, sysctls};
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
    for (way, attributes) in by_way(changes, Format::Ansible) {
        let dev = way.dev;
        let folder = format!("/etc/systemd/network/50-{dev}.network.d");
        let _ = write!(
            text,
            "- name: folder of drop-ins of {dev}\n  ansible.builtin.file:\n    path: {folder}\n    state: directory\n    mode: \"0755\"\n\
             - name: route {} of {dev}\n  ansible.builtin.copy:\n    dest: {folder}/thalweg.conf\n    mode: \"0644\"\n    content: |\n",
            way.to
        );
        for line in networkd::section(&way, &attributes).lines() {
            let _ = writeln!(text, "      {line}");
        }
        let _ = write!(
            text,
            "  register: thalweg_route\n- name: networkctl reload\n  ansible.builtin.command: networkctl reload\n  when: thalweg_route is changed\n"
        );
    }
    text
}
