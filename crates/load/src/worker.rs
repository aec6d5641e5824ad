//! Threads that keep players going.

use crate::connection::Connection;
use crate::plan::{LoadError, Plan};
use crate::player::{Player, Shared};
use crate::tally::Tally;
use crate::tls;
use rustls::ClientConfig;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use thalweg_host::poll::Poller;

/// What one read takes at most.
const BUFFER: usize = 64 << 10;

/// Runs a load; gives what its players met. `watch` is called now and then with the number of players that have started and of those that play.
///
/// # Errors
/// [`LoadError`] when the URL leads nowhere, or this host refuses what all players need. What single players meet is counted.
pub fn run(plan: &Plan, stop: &AtomicBool, watch: impl Fn(u64, u64) + Sync) -> Result<Tally, LoadError> {
    plan.address()?;
    let config = tls::config(plan.insecure);
    let (started, playing) = (AtomicU64::new(0), AtomicU64::new(0));
    let total = Mutex::new(Tally::default());
    let threads = plan.threads.max(1);
    let begun = Instant::now();
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|thread| {
                let numbers = plan.own().skip(thread).step_by(threads).collect();
                let worker = Worker { plan, config: &config, begun, counts: [&started, &playing], stop };
                scope.spawn(move || worker.run(numbers))
            })
            .collect();
        while workers.iter().any(|worker| !worker.is_finished()) {
            watch(started.load(Ordering::Relaxed), playing.load(Ordering::Relaxed));
            std::thread::sleep(Duration::from_millis(100));
        }
        for worker in workers {
            let tally = worker.join().expect("invariant: players do not panic")?;
            total.lock().expect("invariant: nobody panics with it").add(&tally);
        }
        Ok(())
    })
    .map(|()| total.into_inner().expect("invariant: nobody panics with it"))
}

/// What is to be done when, and by whom.
type Queue = BinaryHeap<Reverse<(Duration, usize)>>;

struct Worker<'a> {
    plan: &'a Plan,
    config: &'a Arc<ClientConfig>,
    begun: Instant,
    /// Players that have started, and that play.
    counts: [&'a AtomicU64; 2],
    stop: &'a AtomicBool,
}

/// A player, and when it started after the load did.
struct Own {
    player: Player,
    start: Duration,
    /// When it is due; entries of the queue that say otherwise are old.
    due: Option<Duration>,
}

impl Worker<'_> {
    fn run(&self, numbers: Vec<u32>) -> Result<Tally, LoadError> {
        let poller = Poller::new()?;
        let mut tally = Tally::default();
        let mut buffer = vec![0; BUFFER];
        let mut players: Vec<Own> = Vec::with_capacity(numbers.len());
        let mut queue = Queue::new();
        let mut waiting = numbers.into_iter().map(|number| (self.plan.start_of(number), number)).peekable();
        let mut ready = Vec::new();
        let mut told = 0;
        loop {
            let now = self.begun.elapsed();
            if now >= self.plan.duration || self.stop.load(Ordering::Relaxed) {
                break;
            }
            while let Some((start, number)) = waiting.next_if(|(start, _)| *start <= now) {
                players.push(Own { player: Player::new(self.plan, number), start, due: None });
                queue.push(Reverse((start, players.len() - 1)));
                if let Some(own) = players.last_mut() {
                    own.due = Some(start);
                }
                tally.players += 1;
                self.counts[0].fetch_add(1, Ordering::Relaxed);
            }
            while let Some(&Reverse((due, index))) = queue.peek()
                && due <= now
            {
                queue.pop();
                if players[index].due == Some(due) {
                    self.turn(&mut players[index], index, &poller, (&mut tally, &mut buffer, &mut queue), Player::wake);
                }
            }
            let next = queue.peek().map(|Reverse((due, _))| *due).into_iter().chain(waiting.peek().map(|w| w.0)).min();
            let most = next.unwrap_or(self.plan.duration).min(self.plan.duration).saturating_sub(self.begun.elapsed());
            ready.clear();
            poller.wait(Some(most.min(Duration::from_millis(100))), &mut ready)?;
            for event in &ready {
                let index = event.token as usize;
                self.turn(&mut players[index], index, &poller, (&mut tally, &mut buffer, &mut queue), Player::ready);
            }
            self.counts[1].fetch_add(tally.playing - told, Ordering::Relaxed);
            told = tally.playing;
        }
        let now = self.begun.elapsed();
        players.iter().for_each(|own| own.player.end(now.saturating_sub(own.start), &mut tally));
        Ok(tally)
    }

    /// It is a player's turn to do `what`; then it is put in the queue for when it is due.
    fn turn(
        &self,
        own: &mut Own,
        index: usize,
        poller: &Poller,
        (tally, buffer, queue): (&mut Tally, &mut [u8], &mut Queue),
        what: impl FnOnce(&mut Player, Duration, &mut Shared<'_>),
    ) {
        let mut watch =
            |connection: &Connection| poller.add_edges(connection, index as u64).map_err(|error| error.source);
        let now = self.begun.elapsed().saturating_sub(own.start);
        let mut shared = Shared { plan: self.plan, tls: self.config, tally, buffer, watch: &mut watch };
        what(&mut own.player, now, &mut shared);
        let due = own.player.due(now).map(|due| own.start + due);
        if due != own.due || due.is_some_and(|due| due <= own.start + now) {
            own.due = due;
            queue.extend(due.map(|due| Reverse((due, index))));
        }
    }
}
