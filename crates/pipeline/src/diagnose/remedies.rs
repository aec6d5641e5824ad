//! What mends the connections that `diagnose` found.

use thalweg_model::since::Release;
use thalweg_model::{Flow, HostReport, SettingsReport, Side, Vantage};
use thalweg_tune::Facts;

/// Plans remedies by what is known of the hosts.
#[derive(Debug, Clone, Default)]
pub struct Remedies {
    /// The release that the hosts run; `None` plans what holds for all.
    pub kernel: Option<Release>,
    /// This host's settings, where its own connections are watched.
    pub own: Option<HostReport>,
}

impl Remedies {
    /// What is asked of this host's settings; those that cannot be read stay unknown.
    pub const SYSCTLS: [&str; 10] = [
        "net.ipv4.tcp_adv_win_scale",
        "net.ipv4.tcp_congestion_control",
        "net.ipv4.tcp_mtu_probing",
        "net.ipv4.tcp_reordering",
        "net.ipv4.tcp_rmem",
        "net.ipv4.tcp_sack",
        "net.ipv4.tcp_slow_start_after_idle",
        "net.ipv4.tcp_timestamps",
        "net.ipv4.tcp_window_scaling",
        "net.ipv4.tcp_wmem",
    ];

    /// Plans for a connection.
    pub(super) fn plan(&self, flow: &mut Flow) {
        let mut settings = SettingsReport::default();
        let here = Facts::of_flow(flow, self.kernel, &settings);
        let here = match flow.vantage {
            Vantage::Sender => Some(here.sender()),
            Vantage::Receiver => Some(here.receiver()),
            Vantage::Middle | Vantage::Unknown => None,
        };
        let address = |end: &str| end.rsplit_once(':').map(|(address, _)| address.to_owned());
        // Both ends of a connection that stays on this host are its own.
        let within = self.own.is_some() && address(&flow.client) == address(&flow.server);
        let here = here.filter(|_| !within);
        if let (Some(own), true) = (&self.own, within) {
            (settings.client, settings.server) = (own.clone(), own.clone());
        }
        if let (Some(own), Some(here)) = (&self.own, here) {
            *(if here == Side::Client { &mut settings.client } else { &mut settings.server }) = own.clone();
        }
        let facts = Facts::of_flow(flow, self.kernel, &settings);
        flow.remedies = thalweg_tune::for_flow(flow, &facts, here);
    }
}
