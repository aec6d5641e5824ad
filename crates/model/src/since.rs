//! Which kernels have a setting.
//!
//! Only what came after Linux 4.4, or went since, is in the tables: anything else is in every kernel the lab can build.
//! The version is that of the mainline release; where stable releases got a setting too, the oldest such series counts.

use crate::remedy::Setting;
use crate::settings::HostSettings;

/// A kernel's major and minor number, such as (6, 12).
pub type Release = (u32, u32);

/// Sysctls below `net.`, and the first kernel of each.
const SYSCTLS: [(&str, Release); 33] = [
    ("core.txrehash", (5, 18)),
    ("ipv4.fib_multipath_hash_policy", (4, 12)),
    ("ipv4.ip_autobind_reuse", (5, 7)),
    ("ipv4.ip_forward_update_priority", (4, 19)),
    ("ipv4.ip_unprivileged_port_start", (4, 11)),
    ("ipv4.tcp_available_ulp", (4, 13)),
    ("ipv4.tcp_backlog_ack_defer", (6, 7)),
    ("ipv4.tcp_child_ehash_entries", (6, 1)),
    ("ipv4.tcp_comp_sack_delay_ns", (4, 18)),
    ("ipv4.tcp_comp_sack_nr", (4, 18)),
    ("ipv4.tcp_comp_sack_slack_ns", (5, 8)),
    ("ipv4.tcp_early_demux", (4, 12)),
    ("ipv4.tcp_ecn_option", (6, 18)),
    ("ipv4.tcp_ecn_option_beacon", (6, 18)),
    ("ipv4.tcp_ehash_entries", (6, 1)),
    ("ipv4.tcp_fastopen_blackhole_timeout_sec", (4, 12)),
    ("ipv4.tcp_migrate_req", (5, 14)),
    ("ipv4.tcp_min_snd_mss", (5, 2)),
    ("ipv4.tcp_mtu_probe_floor", (5, 4)),
    ("ipv4.tcp_no_ssthresh_metrics_save", (5, 6)),
    // Of 6.7, and in stable 6.6.
    ("ipv4.tcp_pingpong_thresh", (6, 6)),
    ("ipv4.tcp_plb_cong_thresh", (6, 2)),
    ("ipv4.tcp_plb_enabled", (6, 2)),
    ("ipv4.tcp_plb_idle_rehash_rounds", (6, 2)),
    ("ipv4.tcp_plb_rehash_rounds", (6, 2)),
    ("ipv4.tcp_plb_suspend_rto_sec", (6, 2)),
    ("ipv4.tcp_reflect_tos", (5, 10)),
    ("ipv4.tcp_rto_max_ms", (6, 15)),
    ("ipv4.tcp_rto_min_us", (6, 11)),
    // Of 6.5, and in stable 6.1.
    ("ipv4.tcp_shrink_window", (6, 1)),
    ("ipv4.tcp_syn_linear_timeouts", (6, 5)),
    ("ipv4.tcp_tso_rtt_log", (5, 18)),
    ("ipv4.tcp_tw_reuse_delay", (6, 14)),
];

/// Options of sockets by their scenario names: the kernel's name and the first kernel of each.
const SOCKET_OPTIONS: [(&str, &str, Release); 3] = [
    ("delack_max", "TCP_DELACK_MAX_US", (6, 15)),
    ("fastopen", "TCP_FASTOPEN_CONNECT", (4, 11)),
    ("rto_min", "TCP_RTO_MIN_US", (6, 15)),
];

/// Congestion controls, and the first kernel of each.
const CONGESTION_CONTROLS: [(&str, Release); 2] = [("bbr", (4, 9)), ("nv", (4, 8))];

const ROUTE_FEATURES: [(&str, Release); 1] = [("tcp_usec_ts", (6, 7))];

/// Sysctls below `net.ipv4.` that do nothing, or are not there, from some kernel on, and what became of them.
const GONE: [(&str, Release, &str); 5] = [
    (
        "tcp_adv_win_scale",
        (6, 6),
        "is ignored: the kernel takes the part of the buffer that is data from each packet's real cost",
    ),
    ("tcp_fack", (4, 15), "is ignored: RACK has taken the place of forward acknowledgement"),
    ("tcp_low_latency", (4, 14), "is ignored: the prequeue it turned off is gone"),
    ("tcp_thin_dupack", (4, 11), "is gone: RACK does what it did"),
    ("tcp_tw_recycle", (4, 12), "is gone: it broke connections from behind one address"),
];

/// The first kernel in which `setting` can have `value`; `None` where every kernel since 4.4 will do, or it is not known.
pub fn first_kernel(setting: &Setting, value: &str) -> Option<Release> {
    let among = |table: &[(&str, Release)], word: &str| table.iter().find(|line| line.0 == word).map(|line| line.1);
    let congestion = || among(&CONGESTION_CONTROLS, value);
    match setting {
        Setting::Sysctl(name) if name == "net.ipv4.tcp_congestion_control" => congestion(),
        Setting::Sysctl(name) => among(&SYSCTLS, name.strip_prefix("net.")?),
        Setting::Route(name) if name == "congctl" => congestion(),
        Setting::Route(name) if name == "features" => {
            value.split_whitespace().filter_map(|feature| among(&ROUTE_FEATURES, feature)).max()
        }
        Setting::Route(_) => None,
        Setting::Socket(name) if name == "congestion" => congestion(),
        Setting::Socket(name) => SOCKET_OPTIONS.iter().find(|line| line.0 == name).map(|line| line.2),
    }
}

/// Since which kernel a setting does nothing, and what became of it; `None` where it still does something.
pub fn without_effect_since(setting: &Setting) -> Option<(Release, &'static str)> {
    let Setting::Sysctl(name) = setting else { return None };
    let name = name.strip_prefix("net.ipv4.")?;
    GONE.iter().find(|line| line.0 == name).map(|line| (line.1, line.2))
}

/// Why a kernel cannot have these settings, one sentence for each, such as "kernel 6.1 has no TCP_RTO_MIN_US; Linux 6.15 is
/// the first that has it".
pub fn missing(settings: &HostSettings, kernel: Release) -> Vec<String> {
    let given = settings.given();
    let lacks = given.iter().filter_map(|(setting, value)| {
        let first = first_kernel(setting, value).filter(|first| kernel < *first)?;
        Some(format!("kernel {} has no {}; {}", show(kernel), name(setting, value), sentence(first)))
    });
    lacks.collect()
}

/// What these settings ask in vain of a kernel, one sentence for each.
pub fn without_effect(settings: &HostSettings, kernel: Release) -> Vec<String> {
    let given = settings.given();
    let vain = given.iter().filter_map(|(setting, value)| {
        let (_, why) = without_effect_since(setting).filter(|(from, _)| kernel >= *from)?;
        Some(format!("in kernel {}, {} {why}", show(kernel), name(setting, value)))
    });
    vain.collect()
}

/// "Linux 6.15 is the first that has it".
pub fn sentence(first: Release) -> String {
    format!("Linux {} is the first that has it", show(first))
}

/// Reads the release of a kernel, such as `6.12.117-thalweg`.
pub fn release(text: &str) -> Option<Release> {
    let mut parts = text.split(|c: char| !c.is_ascii_digit());
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

fn show((major, minor): Release) -> String {
    format!("{major}.{minor}")
}

/// What an error calls a setting: the kernel's name of it.
fn name(setting: &Setting, value: &str) -> String {
    match setting {
        Setting::Sysctl(name) if name == "net.ipv4.tcp_congestion_control" => format!("congestion control '{value}'"),
        Setting::Sysctl(name) => name.clone(),
        Setting::Route(name) if name == "congctl" => format!("congestion control '{value}'"),
        Setting::Route(name) => format!("route attribute '{name} {value}'"),
        Setting::Socket(name) if name == "congestion" => format!("congestion control '{value}'"),
        Setting::Socket(name) => {
            let known = SOCKET_OPTIONS.iter().find(|line| line.0 == name).map(|line| line.1);
            known.map_or_else(|| format!("socket option '{name}'"), str::to_owned)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use thalweg_units::Span;

    #[test]
    fn what_a_kernel_lacks_is_named_with_the_first_that_has_it() {
        let mut settings = HostSettings::default();
        settings.socket.rto_min = Some(Span::from_millis(5));
        settings.socket.congestion = Some("bbr".to_owned());
        settings.sysctl.insert("net.ipv4.tcp_rto_min_us".to_owned(), "5000".to_owned());
        settings.sysctl.insert("net.ipv4.tcp_adv_win_scale".to_owned(), "1".to_owned());
        assert_eq!(
            missing(&settings, (6, 1)),
            [
                "kernel 6.1 has no net.ipv4.tcp_rto_min_us; Linux 6.11 is the first that has it",
                "kernel 6.1 has no TCP_RTO_MIN_US; Linux 6.15 is the first that has it",
            ]
        );
        assert_eq!(missing(&settings, (6, 15)), Vec::<String>::new());
        assert_eq!(missing(&settings, (4, 4)).len(), 3);
        assert!(without_effect(&settings, (6, 1)).is_empty());
        assert!(without_effect(&settings, (6, 6))[0].contains("net.ipv4.tcp_adv_win_scale is ignored"));
    }

    #[test]
    fn every_setting_is_listed_once() {
        let all = HostSettings {
            route: crate::RouteSettings { features: crate::RouteFeature::ALL.to_vec(), ..Default::default() },
            ..HostSettings::default()
        };
        assert_eq!(all.given(), [(Setting::Route("features".to_owned()), "ecn tcp_usec_ts".to_owned())]);
        assert_eq!(missing(&all, (6, 1)).len(), 1);
        assert_eq!(HostSettings::default().given(), []);
    }

    #[test]
    fn releases_are_read() {
        assert_eq!(release("6.12.117-thalweg"), Some((6, 12)));
        assert_eq!(release("6.1"), Some((6, 1)));
        assert_eq!(release("six"), None);
    }
}
