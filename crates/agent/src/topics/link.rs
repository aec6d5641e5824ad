//! A topic's connection: messages with a number and a length, published at their times or noted when they are whole.

use crate::clock::Clock;
use crate::error::AgentError;
use crate::message::{MESSAGE_BYTES_MAX, MESSAGE_BYTES_MIN, TopicEnd, TopicPlan, TopicsPlan};
use std::collections::VecDeque;
use std::io::IoSlice;
use thalweg_host::HostError;
use thalweg_host::socket::Tcp;
use thalweg_host::tcp_info::TcpInfo;
use thalweg_model::SocketSettings;
use thalweg_units::Seed;

/// Bytes before a message: its number and its length with these, each of 64 bits in network order.
const HEADER_BYTES: usize = MESSAGE_BYTES_MIN as usize;
/// What one call sends or receives at most.
const BLOCK: usize = 64 << 10;
static FILLER: [u8; BLOCK] = [0x5a; BLOCK];

/// A topic's connection at one end.
pub(super) struct Link {
    pub(super) tcp: Tcp,
    topic: u32,
    plan: TopicPlan,
    seed: Seed,
    /// Messages of the whole test.
    messages: u64,
    end: End,
}

enum End {
    Publisher {
        published: u64,
        /// Messages the socket has not taken whole yet: number and length.
        waiting: VecDeque<(u64, u64)>,
        /// Bytes of the first of them that it has taken.
        taken: u64,
        waiting_bytes: u64,
        backlog_max: u64,
    },
    Subscriber {
        header: [u8; HEADER_BYTES],
        have: usize,
        /// The number of the message whose body comes, and how much of it is to come.
        body: Option<(u64, u64)>,
        /// When each message was whole, by this end's clock.
        arrivals: Vec<Option<u64>>,
        missing: usize,
    },
}

impl Link {
    /// Over a connection; `publishes` is what this end does.
    pub(super) fn new(
        tcp: Tcp,
        (topic, plan): (u32, TopicPlan),
        of: &TopicsPlan,
        publishes: bool,
    ) -> Result<Self, AgentError> {
        let congestion = of.congestion.clone().filter(|_| publishes);
        let settings = SocketSettings { nodelay: Some(true), congestion, ..SocketSettings::default() };
        tcp.apply(&settings)?;
        tcp.set_priority(plan.priority)?;
        let messages = of.messages(&plan);
        let end = if publishes {
            End::Publisher { published: 0, waiting: VecDeque::new(), taken: 0, waiting_bytes: 0, backlog_max: 0 }
        } else {
            let arrivals = vec![None; messages as usize];
            End::Subscriber { header: [0; HEADER_BYTES], have: 0, body: None, missing: arrivals.len(), arrivals }
        };
        Ok(Self { tcp, topic, plan, seed: Seed::new(of.seed).derive(u64::from(topic)), messages, end })
    }

    /// When the next message is due, after the start; `None` if this end publishes no more.
    pub(super) fn next_due_ns(&self) -> Option<u64> {
        match &self.end {
            End::Publisher { published, .. } if *published < self.messages => {
                Some(self.plan.phase.as_nanos() + self.plan.period.as_nanos() * published)
            }
            _ => None,
        }
    }

    /// Publishes the next message.
    pub(super) fn publish(&mut self, clock: Clock) -> Result<(), AgentError> {
        let End::Publisher { published, waiting, waiting_bytes, .. } = &mut self.end else { return Ok(()) };
        let bytes = self.plan.size.draw(self.seed.derive(*published)).get();
        waiting.push_back((*published, bytes));
        *waiting_bytes += bytes;
        *published += 1;
        self.advance(clock)
    }

    /// Moves what can be moved, and notes by `clock` when a message is whole.
    pub(super) fn advance(&mut self, clock: Clock) -> Result<(), AgentError> {
        let topic = self.topic;
        let broken = |error: HostError| AgentError::Topic(topic, error.source.to_string());
        let wrong = |why: &str| AgentError::Topic(topic, why.to_owned());
        match &mut self.end {
            End::Publisher { waiting, taken, waiting_bytes, backlog_max, .. } => {
                while let Some((number, bytes)) = waiting.front() {
                    let header = [number.to_be_bytes(), bytes.to_be_bytes()].concat();
                    let header = header.get(*taken as usize..).unwrap_or(&[]);
                    let body = bytes - (*taken).max(HEADER_BYTES as u64);
                    let body = &FILLER[..body.min(BLOCK as u64) as usize];
                    let parts = [IoSlice::new(header), IoSlice::new(body)];
                    let Some(sent) = self.tcp.send_parts(&parts).map_err(broken)? else { break };
                    *taken += sent as u64;
                    *waiting_bytes -= sent as u64;
                    if *taken == *bytes {
                        *taken = 0;
                        waiting.pop_front();
                    }
                }
                *backlog_max = (*backlog_max).max(*waiting_bytes);
                // A subscriber sends nothing: what is readable is the end.
                match self.tcp.discard(1).map_err(broken)? {
                    None => Ok(()),
                    Some(0) => Err(wrong("the subscriber closed it")),
                    Some(_) => Err(wrong("the subscriber sent data")),
                }
            }
            End::Subscriber { header, have, body, arrivals, missing } => loop {
                let Some((number, left)) = body else {
                    match self.tcp.receive(&mut header[*have..]).map_err(broken)? {
                        None => return Ok(()),
                        Some(0) => return Err(wrong("the publisher closed it")),
                        Some(count) => *have += count,
                    }
                    if *have == HEADER_BYTES {
                        *have = 0;
                        let (number, bytes) = read_header(header).ok_or_else(|| wrong("it carries no messages"))?;
                        *body = Some((number, bytes - HEADER_BYTES as u64));
                        if bytes == HEADER_BYTES as u64 {
                            *body = None;
                            note(arrivals, missing, number, clock.now_ns())
                                .ok_or_else(|| wrong("a message was not expected"))?;
                        }
                    }
                    continue;
                };
                match self.tcp.discard((*left).min(1 << 20) as usize).map_err(broken)? {
                    None => return Ok(()),
                    Some(0) => return Err(wrong("the publisher closed it")),
                    Some(count) => *left -= count as u64,
                }
                if *left == 0 {
                    let number = *number;
                    *body = None;
                    note(arrivals, missing, number, clock.now_ns())
                        .ok_or_else(|| wrong("a message was not expected"))?;
                }
            },
        }
    }

    /// Whether nothing is to be done any more at this end.
    pub(super) fn is_over(&self) -> bool {
        match &self.end {
            End::Publisher { published, waiting, .. } => *published == self.messages && waiting.is_empty(),
            End::Subscriber { missing, .. } => *missing == 0,
        }
    }

    /// When each message was whole, at the subscriber.
    pub(super) fn arrivals(&self) -> Option<&[Option<u64>]> {
        match &self.end {
            End::Subscriber { arrivals, .. } => Some(arrivals),
            End::Publisher { .. } => None,
        }
    }

    /// The connection as it is now, at the publisher.
    pub(super) fn figures(&self) -> Result<Option<TopicEnd>, AgentError> {
        let End::Publisher { published, backlog_max, .. } = &self.end else { return Ok(None) };
        let info = TcpInfo::of(&self.tcp)?;
        Ok(Some(TopicEnd {
            topic: self.topic,
            published: *published,
            congestion: self.tcp.congestion(),
            retransmits: info.get("tcpi_total_retrans"),
            timeouts: info.fields().find(|(name, _)| *name == "tcpi_total_rto").map(|(_, count)| count),
            rto_us: info.get("tcpi_rto"),
            rtt_us: info.get("tcpi_rtt"),
            min_rtt_us: info.get("tcpi_min_rtt"),
            cwnd_packets: info.get("tcpi_snd_cwnd"),
            backlog_max_bytes: *backlog_max,
        }))
    }
}

/// The number and the length of a message; `None` if the length is out of its range.
fn read_header(header: &[u8; HEADER_BYTES]) -> Option<(u64, u64)> {
    let word = |from: usize| u64::from_be_bytes(std::array::from_fn(|byte| header[from + byte]));
    Some((word(0), word(8))).filter(|(_, bytes)| (MESSAGE_BYTES_MIN..=MESSAGE_BYTES_MAX).contains(bytes))
}

/// Notes an arrival; `None` for a message that came before, or that there is not.
fn note(arrivals: &mut [Option<u64>], missing: &mut usize, number: u64, now_ns: u64) -> Option<()> {
    let place = arrivals.get_mut(usize::try_from(number).ok()?).filter(|place| place.is_none())?;
    *place = Some(now_ns);
    *missing -= 1;
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};
    use std::time::{Duration, Instant};
    use thalweg_model::{Size, Way};
    use thalweg_units::{Bytes, Span};

    fn plan(bytes: u64) -> TopicsPlan {
        let topic = TopicPlan {
            way: Way::Up,
            period: Span::from_millis(10),
            phase: Span::ZERO,
            size: Size::Fixed { bytes: Bytes::new(bytes) },
            priority: 0,
        };
        TopicsPlan { topics: vec![topic], span: Span::from_millis(30), seed: 1, congestion: None }
    }

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
        let near = TcpStream::connect(listener.local_addr().expect("an address")).expect("connected");
        let far = listener.accept().expect("accepted").0;
        near.set_nonblocking(true).expect("set");
        (near, far)
    }

    fn link(tcp: TcpStream, bytes: u64, publishes: bool) -> Link {
        let plan = plan(bytes);
        Link::new(Tcp::from(tcp), (0, plan.topics[0]), &plan, publishes).expect("a link")
    }

    /// Advances until it is over or fails.
    fn run(link: &mut Link) -> Result<(), AgentError> {
        let deadline = Instant::now() + Duration::from_secs(10);
        while !link.is_over() {
            link.advance(Clock::start())?;
            assert!(Instant::now() < deadline, "it is not over");
        }
        Ok(())
    }

    #[test]
    fn messages_of_any_size_are_whole_at_the_subscriber() {
        for bytes in [16, 17, 70_000, 3_000_000] {
            let (near, far) = pair();
            far.set_nonblocking(true).expect("set");
            let (mut publisher, mut subscriber) = (link(near, bytes, true), link(far, bytes, false));
            assert_eq!(publisher.next_due_ns(), Some(0));
            let publishing = std::thread::spawn(move || {
                let clock = Clock::start();
                for due in [Some(10_000_000), Some(20_000_000), None] {
                    publisher.publish(clock).expect("published");
                    assert_eq!(publisher.next_due_ns(), due);
                }
                run(&mut publisher).expect("taken");
                publisher
            });
            run(&mut subscriber).expect("whole");
            let publisher = publishing.join().expect("published");
            let figures = publisher.figures().expect("read").expect("a publisher's");
            assert_eq!((figures.published, figures.congestion.is_empty()), (3, false));
            assert!(subscriber.arrivals().is_some_and(|all| all.iter().all(Option::is_some)));
        }
    }

    #[test]
    fn what_is_no_message_breaks_the_topic() {
        let header = |number: u64, bytes: u64| [number.to_be_bytes(), bytes.to_be_bytes()].concat();
        for (sent, why) in [
            (header(0, 15), "it carries no messages"),
            (header(0, u64::MAX), "it carries no messages"),
            (header(3, 16), "a message was not expected"),
            ([header(1, 16), header(1, 16)].concat(), "a message was not expected"),
            (b"GET / HTTP/1.1\r\n\r\n".to_vec(), "it carries no messages"),
        ] {
            let (near, mut far) = pair();
            far.write_all(&sent).expect("sent");
            let failed = run(&mut link(near, 16, false)).expect_err("no message");
            assert_eq!(failed.to_string(), format!("the connection of topic 0 broke: {why}"));
        }
        let (near, far) = pair();
        drop(far);
        assert!(run(&mut link(near, 16, false)).is_err());
        let (near, mut far) = pair();
        far.write_all(b"x").expect("sent");
        let mut publisher = link(near, 16, true);
        let deadline = Instant::now() + Duration::from_secs(10);
        while publisher.advance(Clock::start()).is_ok() {
            assert!(Instant::now() < deadline, "a subscriber that sends is taken");
        }
    }
}
