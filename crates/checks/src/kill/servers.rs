//! The servers of a round: one or two on one store, each with its lives.

use std::collections::VecDeque;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU16, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::found::{Found, Kind};
use super::strokes::Life;
use super::world::{Running, World, deadline};

/// How long a server may take until it listens.
const STARTING: Duration = Duration::from_secs(20);
const PAUSE: Duration = Duration::from_micros(500);

/// A server at an address that stays the same.
pub(crate) struct Server<'w> {
    world: &'w World,
    address: SocketAddr,
    lives: VecDeque<Life>,
    doing: Doing,
}

enum Doing {
    /// Nobody runs it until then.
    Away(Instant),
    /// It runs, and is killed then if it is not to be left alone.
    Running(Running, Option<Instant>),
}

impl<'w> Server<'w> {
    /// One that has not begun.
    pub(crate) fn at(world: &'w World, address: SocketAddr, lives: Vec<Life>) -> Self {
        Self { world, address, lives: lives.into(), doing: Doing::Away(Instant::now()) }
    }

    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Whether it has lived all its lives and runs undisturbed.
    pub(crate) const fn is_left_alone(&self) -> bool {
        matches!(self.doing, Doing::Running(_, None))
    }

    /// Does what is due: starts it, kills it, or buries it.
    pub(crate) fn look(&mut self, found: &mut Found) -> io::Result<()> {
        let now = Instant::now();
        match &mut self.doing {
            Doing::Away(until) if *until > now => {}
            Doing::Away(_) => self.begin()?,
            Doing::Running(running, until) => {
                if until.is_some_and(|until| until <= now) {
                    self.world.kill(running)?;
                }
                if running.has_ended()? {
                    self.world.mourn(running);
                    let ended = running.ended()?;
                    found.claim(Kind::Unlawful, ended.code == -9, || {
                        format!("a server ended with {}: {}", ended.code, ended.err)
                    });
                    let away = self.lives.front().map(|it| it.away).unwrap_or_default();
                    self.doing = Doing::Away(deadline(away));
                }
            }
        }
        Ok(())
    }

    fn begin(&mut self) -> io::Result<()> {
        let life = self.lives.pop_front();
        let place = life.as_ref().and_then(|it| it.place.clone());
        let listen = self.address.to_string();
        let running = self.world.start(&["serve", "--listen", &listen], place.as_deref())?;
        let stroke = life.as_ref().and_then(|it| it.strokes.first());
        let until = stroke.map(|it| deadline(it.after));
        self.doing = Doing::Running(running, until);
        Ok(())
    }

    /// Starts it now, and waits until it listens.
    pub(crate) fn listens(&mut self) -> io::Result<()> {
        self.begin()?;
        let until = deadline(STARTING);
        if let Doing::Running(running, _) = &mut self.doing {
            while !running.out().contains("listening at") {
                if running.has_ended()? || Instant::now() >= until {
                    let said = running.ended()?.err;
                    return Err(io::Error::other(format!("a server does not listen: {said}")));
                }
                thread::sleep(PAUSE);
            }
        }
        Ok(())
    }

    /// `kill -9`.
    pub(crate) fn kill(&mut self) -> io::Result<()> {
        if let Doing::Running(running, _) = &mut self.doing {
            self.world.kill(running)?;
            self.world.mourn(running);
        }
        self.doing = Doing::Away(Instant::now());
        Ok(())
    }
}

/// An address nobody has, from where the system gives none away by itself.
pub(crate) fn address() -> io::Result<SocketAddr> {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let own = u16::try_from(std::process::id().wrapping_rem(600)).unwrap_or_default();
    for _ in 0..1000 {
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        let port = own.wrapping_mul(16).wrapping_add(next).wrapping_rem(9000);
        let address = SocketAddr::from(([127, 0, 0, 1], port.saturating_add(20_500)));
        if TcpListener::bind(address).is_ok() {
            return Ok(address);
        }
    }
    Err(io::Error::other("no address is free"))
}
