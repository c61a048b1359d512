//! Steps from dependencies.
//!
//! A message comes one step after the last message that its ends wait for. A receive does not wait
//! for earlier sends of its rank: data that arrive do not depend on data that leave, and two ranks
//! may send to each other before either receives. Files do not say where ranks take turns without a
//! message between them, as for the port of a node; such schedules get fewer steps.

/// A point in the program of a rank: operations after it wait for all operations before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Point(u32);

/// The dependencies of all ranks.
#[derive(Default)]
pub(super) struct Order {
    /// Each point is two vertices: one that later sends wait for, and one that later receives wait
    /// for. Messages are vertices too. An edge from a message has length 1, other edges 0.
    vertices: u32,
    edges: Vec<(u32, u32)>,
    messages: Vec<u32>,
}

/// The most bytes of a point, or of a message, until the steps are known.
pub(super) const MEMORY: u128 = 120;

impl Order {
    /// A new point without dependencies.
    pub(super) fn point(&mut self) -> Point {
        self.vertices += 2;
        Point(self.vertices - 2)
    }

    /// Makes a point wait for all dependencies of an earlier one.
    pub(super) fn after(&mut self, later: Point, earlier: Point) {
        self.edges.extend([(earlier.0, later.0), (earlier.0 + 1, later.0 + 1)]);
    }

    /// Adds a message, sent between two points of its sender and received between two of its
    /// receiver.
    pub(super) fn message(&mut self, sent: (Point, Point), received: (Point, Point)) {
        let message = self.vertices;
        self.vertices += 1;
        self.messages.push(message);
        self.edges.extend([
            (sent.0.0, message),
            (received.0.0 + 1, message),
            (message, sent.1.0),
            (message, received.1.0),
            (message, received.1.0 + 1),
        ]);
    }

    /// The step of each message, in the order added.
    ///
    /// # Errors
    /// A message that waits for itself.
    pub(super) fn steps(mut self) -> Result<Vec<u32>, usize> {
        let count = self.vertices as usize;
        self.edges.sort_unstable();
        let mut waits = vec![0u32; count];
        for &(_, to) in &self.edges {
            waits[to as usize] += 1;
        }
        let mut step = vec![0u32; count];
        let mut is_message = vec![false; count];
        for &message in &self.messages {
            is_message[message as usize] = true;
        }
        let mut ready: Vec<u32> = (0..self.vertices).filter(|&v| waits[v as usize] == 0).collect();
        while let Some(from) = ready.pop() {
            let first = self.edges.partition_point(|&(v, _)| v < from);
            let after = step[from as usize] + u32::from(is_message[from as usize]);
            for &(_, to) in self.edges[first..].iter().take_while(|&&(v, _)| v == from) {
                let to = to as usize;
                step[to] = step[to].max(after);
                waits[to] -= 1;
                if waits[to] == 0 {
                    ready.push(to as u32);
                }
            }
        }
        match self.messages.iter().position(|&message| waits[message as usize] > 0) {
            Some(stuck) => Err(stuck),
            None => Ok(self.messages.iter().map(|&message| step[message as usize]).collect()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_comes_after_those_its_ends_wait_for() {
        let mut order = Order::default();
        // Rank 0 sends to 1, which passes it on to 2; rank 2 sends to 0 before it receives.
        let [a, b] = [order.point(), order.point()];
        let [c, d, e] = [order.point(), order.point(), order.point()];
        let [f, g, h] = [order.point(), order.point(), order.point()];
        order.message((a, b), (c, d));
        order.message((d, e), (g, h));
        order.message((f, g), (a, b));
        assert_eq!(order.steps(), Ok(vec![0, 1, 0]));
    }

    #[test]
    fn a_receive_waits_for_receives_before_it_and_not_for_sends() {
        for (receives_first, expected) in [(true, [0, 1]), (false, [0, 0])] {
            for apart in [false, true] {
                let mut order = Order::default();
                let [a, b, c, d, e, f, g] = [(); 7].map(|()| order.point());
                // Rank 1 receives from 0 or sends to it, and then receives from 2.
                if receives_first {
                    order.message((a, b), (c, d));
                } else {
                    order.message((c, d), (a, b));
                }
                let mut then = d;
                if apart {
                    then = order.point();
                    order.after(then, d);
                }
                order.message((e, f), (then, g));
                assert_eq!(order.steps(), Ok(expected.into()), "{receives_first} {apart}");
            }
        }
    }

    #[test]
    fn two_ranks_may_send_before_they_receive_and_not_the_other_way() {
        let exchange = |sends_first: bool| {
            let mut order = Order::default();
            let [a, b, c, d, e, f] = [(); 6].map(|()| order.point());
            order.after(b, a);
            order.after(c, b);
            order.after(e, d);
            order.after(f, e);
            if sends_first {
                order.message((a, b), (e, f));
                order.message((d, e), (b, c));
            } else {
                order.message((b, c), (d, e));
                order.message((e, f), (a, b));
            }
            order.steps()
        };
        assert_eq!(exchange(true), Ok(vec![0, 0]));
        assert_eq!(exchange(false), Err(0));
    }
}
