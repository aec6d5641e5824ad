//! Ports by the names people write for them.
//!
//! Source: IANA's Service Name and Transport Protocol Port Number Registry, as Debian's netbase has it in /etc/services; the names
//! of what is met in captures of TCP.

const NAMES: [(&str, u16); 60] = [
    ("ftp-data", 20),
    ("ftp", 21),
    ("ssh", 22),
    ("telnet", 23),
    ("smtp", 25),
    ("domain", 53),
    ("http", 80),
    ("https", 443),
    ("kerberos", 88),
    ("pop3", 110),
    ("sunrpc", 111),
    ("nntp", 119),
    ("epmap", 135),
    ("netbios-ssn", 139),
    ("imap2", 143),
    ("imap", 143),
    ("bgp", 179),
    ("ldap", 389),
    ("microsoft-ds", 445),
    ("submissions", 465),
    ("kpasswd", 464),
    ("login", 513),
    ("shell", 514),
    ("printer", 515),
    ("rtsp", 554),
    ("submission", 587),
    ("ipp", 631),
    ("ldaps", 636),
    ("domain-s", 853),
    ("rsync", 873),
    ("imaps", 993),
    ("pop3s", 995),
    ("socks", 1080),
    ("openvpn", 1194),
    ("ms-sql-s", 1433),
    ("mqtt", 1883),
    ("nfs", 2049),
    ("docker", 2375),
    ("iscsi-target", 3260),
    ("mysql", 3306),
    ("ms-wbt-server", 3389),
    ("svn", 3690),
    ("epmd", 4369),
    ("sip", 5060),
    ("sip-tls", 5061),
    ("xmpp-client", 5222),
    ("xmpp-server", 5269),
    ("postgresql", 5432),
    ("amqps", 5671),
    ("amqp", 5672),
    ("x11", 6000),
    ("redis", 6379),
    ("ircd", 6667),
    ("syslog-tls", 6514),
    ("ircs-u", 6697),
    ("http-alt", 8080),
    ("secure-mqtt", 8883),
    ("git", 9418),
    ("bacula-dir", 9101),
    ("amanda", 10_080),
];

/// The port that `name` is the name of.
pub(super) fn port(name: &str) -> Option<u16> {
    NAMES.iter().find(|(known, _)| *known == name).map(|(_, port)| *port)
}

/// Every name that is known.
pub(super) fn all() -> impl Iterator<Item = &'static str> {
    NAMES.iter().map(|(name, _)| *name)
}
