import { connect, type Socket } from "node:net";
import { benchToken } from "../servers/plants.ts";

// A client that sends deletions at a rate of its own, as many independent callers do, whatever comes back: an overload
// is a load that does not wait for answers. Prints what it saw as JSON.

/** What this client is told, as one argument of JSON. */
export interface OpenOrder {
  readonly port: number;
  /** Calls a second; the gaps between them are random, as between independent callers. */
  readonly callsPerS: number;
  readonly durationS: number;
  /** The id of the first plant; each is deleted once. */
  readonly firstPlant: number;
}

/** One answer: how long it took from when its call was due, and what it was. */
export interface OpenAnswer {
  readonly latencyMs: number;
  readonly kind: "deleted" | "refused" | "other";
}

/** Connections at most. With that many answers outstanding, calls wait here, and that counts as the server's time. */
const connectionsMax = 2_000;

/** What it saw. */
export interface OpenSeen {
  readonly answers: readonly OpenAnswer[];
  /** From the first call to the last answer. */
  readonly tookS: number;
}

const order: OpenOrder = JSON.parse(process.argv[2] ?? "");
const answers: OpenAnswer[] = [];
const idle: Connection[] = [];
let open = 0;
let lastAnswer = (): void => undefined;

/** A connection of HTTP/1.1 with one call at a time. */
interface Connection {
  readonly socket: Socket;
  dueMs: number;
  received: string;
}

const startedMs = performance.now();
const endMs = startedMs + order.durationS * 1_000;
let plant = order.firstPlant;
for (let dueMs = startedMs; dueMs < endMs; dueMs += gapMs()) {
  while (performance.now() < dueMs || isFull()) await new Promise((resolve) => setTimeout(resolve, 1));
  send(idle.pop() ?? createConnection(), dueMs);
}
const allAnswered = new Promise<void>((resolve) => (lastAnswer = resolve));
if (open > 0) await allAnswered;
const seen: OpenSeen = { answers, tookS: (performance.now() - startedMs) / 1_000 };
process.stdout.write(JSON.stringify(seen));
for (const { socket } of idle) socket.destroy();

function isFull(): boolean {
  return idle.length === 0 && open >= connectionsMax;
}

/** The gap to the next call of a Poisson process. */
function gapMs(): number {
  return (-Math.log(1 - Math.random()) / order.callsPerS) * 1_000;
}

function createConnection(): Connection {
  const connection: Connection = { socket: connect(order.port, "127.0.0.1"), dueMs: 0, received: "" };
  connection.socket.setNoDelay(true).setEncoding("latin1");
  connection.socket.on("data", (text: string) => take(connection, text));
  return connection;
}

function send(connection: Connection, dueMs: number): void {
  open += 1;
  connection.dueMs = dueMs;
  connection.socket.write(
    `DELETE /plants/${String(plant)} HTTP/1.1\r\nhost: plants\r\nauthorization: Bearer ${benchToken}\r\n\r\n`,
  );
  plant += 1;
}

function take(connection: Connection, text: string): void {
  connection.received += text;
  const headerEnd = connection.received.indexOf("\r\n\r\n");
  if (headerEnd < 0) return;
  const header = connection.received.slice(0, headerEnd);
  const bodyLength = Number(/content-length: (\d+)/i.exec(header)?.[1] ?? 0);
  if (connection.received.length < headerEnd + 4 + bodyLength) return;
  answers.push({ latencyMs: performance.now() - connection.dueMs, kind: kindOf(header) });
  connection.received = "";
  idle.push(connection);
  open -= 1;
  if (open === 0) lastAnswer();
}

function kindOf(header: string): OpenAnswer["kind"] {
  if (header.startsWith("HTTP/1.1 204")) return "deleted";
  return /^retry-after: \d+$/im.test(header) ? "refused" : "other";
}
