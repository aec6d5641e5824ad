//! Paths by name, each with its source.

use clap::ValueEnum;

/// A kind of access, or of route.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Preset {
    /// 12 Mb/s both ways, 70 ms round trip, 315 KB of queue
    Lte,
    /// 1.5 Mb/s down, 384 kb/s up, 50 ms round trip
    Dsl,
    /// 5 Mb/s down, 1 Mb/s up, 28 ms round trip
    Cable,
    /// 40 Mb/s down, 33 Mb/s up, 1 ms each way
    Wifi,
    /// 50 Mb/s down, 10 Mb/s up, 558 ms round trip: a geostationary satellite
    Satellite,
    /// 1 Gb/s, 100 ms round trip: Tokyo to Los Angeles
    Transpacific,
    /// 1 Gb/s, 118,912 bytes of buffer, 10 µs round trip: a switch in a vehicle
    Vehicle,
}

impl Preset {
    /// Its `[path]`, with the source of the figures.
    pub(crate) const fn text(self) -> &'static str {
        match self {
            // Rate and round trip: WebPageTest, www/settings/connectivity.ini.sample, "LTE". Queue: the median of 81 LTE paths
            // of Ashok et al., "iBox: Internet in a Box", SIGMETRICS 2022 (github.com/microsoft/internet-in-a-box).
            Self::Lte => "[path]\nrate = \"12mbit\"\ndelay = \"35ms\"\nqueue = \"315KB\"\n",
            // WebPageTest, as above, "DSL".
            Self::Dsl => "[path]\ndelay = \"25ms\"\n[path.down]\nrate = \"1500kbit\"\n[path.up]\nrate = \"384kbit\"\n",
            // WebPageTest, as above, "Cable".
            Self::Cable => "[path]\ndelay = \"14ms\"\n[path.down]\nrate = \"5mbit\"\n[path.up]\nrate = \"1mbit\"\n",
            // Apple, Network Link Conditioner, "Wi-Fi".
            Self::Wifi => "[path]\ndelay = \"1ms\"\n[path.down]\nrate = \"40mbit\"\n[path.up]\nrate = \"33mbit\"\n",
            // Delay: RFC 2488 section 2, 279 ms at most from earth to earth. The rates are an example of a consumer's.
            Self::Satellite => {
                "[path]\ndelay = \"279ms\"\n[path.down]\nrate = \"50mbit\"\n[path.up]\nrate = \"10mbit\"\n"
            }
            // The Unity cable, Chikura to Los Angeles, has 9,620 km; a kilometre of fibre takes 4.9 µs: 94 ms, and 3 ms of land
            // at each end.
            Self::Transpacific => "[path]\nrate = \"1gbit\"\ndelay = \"50ms\"\nqueue = \"10000 packets\"\n",
            // IEEE 802.3bp (1000BASE-T1). NXP SJA1105: 929 blocks of 128 bytes of frame memory (Linux,
            // drivers/net/dsa/sja1105). A frame of 1,538 bytes takes 12.3 µs, which the rate adds.
            Self::Vehicle => "[path]\nrate = \"1gbit\"\ndelay = \"5us\"\nqueue = \"118912B\"\noverhead = 24\n",
        }
    }
}
