import { once } from "node:events";
import type { Socket } from "node:net";
import { openSocket } from "../support/carriers/exchange.ts";
import type { SlowClientsOrder } from "../support/costs/slow-clients.ts";
import { within } from "../support/deadline.ts";

// Clients of Server-Sent Events in a process of their own, so that nothing of them is counted as held by the server.

/** Those that read slowly. */
const slow: Socket[] = [];

async function obey(order: SlowClientsOrder): Promise<void> {
  if (order.what === "open") await open(order);
  else for (const socket of slow) await readSome(socket);
  process.send?.("done");
}

async function open({ address, count, manner }: SlowClientsOrder & { what: "open" }): Promise<void> {
  for (let opened = 0; opened < count; opened += 1) {
    const socket = openSocket(address);
    // One that is cut off.
    socket.on("error", () => undefined);
    socket.write(`GET /${manner} HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n\r\n`);
    // Connects no faster than the server accepts: a Unix socket refuses what its queue cannot hold.
    await readSome(socket);
    if (manner === "always") socket.resume();
    if (manner === "slowly") slow.push(socket);
  }
}

async function readSome(socket: Socket): Promise<void> {
  const some = once(socket, "data");
  socket.resume();
  await within(some, "the next event");
  socket.pause();
}

process.on("message", (order: SlowClientsOrder) => void obey(order));
process.once("disconnect", () => process.exit());
