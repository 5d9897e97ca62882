import type { Outcome } from "./script.ts";

/** The RPCs of the stream service, as a client has them. */
export interface Streams {
  readonly echo: (pieces: AsyncIterable<Piece>) => AsyncIterable<Piece>;
  readonly count: (pieces: number) => AsyncIterable<Piece>;
  /** What a stream came to that ended with an error. */
  readonly outcomeOf: (error: unknown) => Outcome;
}

interface Piece {
  readonly number: number;
  readonly content: Uint8Array;
}

/** Calls that are under way at once. */
const callers = 64;

/** The content of each piece that is sent. */
const content = new Uint8Array(64 * 1024);

/** Deletes plants 1, 2, 3 … for some seconds, and prints how often which outcome was told; "#" stands for the plant. */
export async function callFor(seconds: number, deletePlant: (id: bigint) => Promise<Outcome>): Promise<void> {
  const counts = new Counts();
  let ids = 0n;
  const callOne = async (): Promise<void> => {
    ids += 1n;
    const id = ids;
    const { code, message } = await deletePlant(id);
    counts.add(`${code} ${message.replace(String(id), "#")}`);
  };
  // Some clients would open a connection for each call that finds none.
  await callOne();
  const untilMs = performance.now() + seconds * 1000;
  const caller = async (): Promise<void> => {
    while (performance.now() < untilMs) await callOne();
  };
  await Promise.all(Array.from({ length: callers }, caller));
  counts.print();
}

/** Sends pieces, reads what comes back meanwhile, and prints how many pieces of which size came, and how it ended. */
export async function echo(pieces: number, streams: Streams): Promise<void> {
  const send = async function* (): AsyncIterable<Piece> {
    for (let number = 0; number < pieces; number++) yield { number, content };
  };
  await read(streams.echo(send()), streams);
}

/** Asks for pieces, and prints the same. */
export async function count(pieces: number, streams: Streams): Promise<void> {
  await read(streams.count(pieces), streams);
}

async function read(pieces: AsyncIterable<Piece>, { outcomeOf }: Streams): Promise<void> {
  const counts = new Counts();
  let outcome: Outcome = { code: 0, message: "" };
  let wanted = 0;
  try {
    for await (const piece of pieces) {
      counts.add(piece.number === wanted ? `${piece.content.length} bytes` : `number ${piece.number} for ${wanted}`);
      wanted++;
    }
  } catch (error) {
    outcome = outcomeOf(error);
  }
  counts.add(`${outcome.code} ${outcome.message}`);
  counts.print();
}

/** How often something was seen. */
class Counts {
  readonly #counts = new Map<string, number>();

  add(seen: string): void {
    const text = seen.trim();
    this.#counts.set(text, (this.#counts.get(text) ?? 0) + 1);
  }

  /** Prints a line for each, and an empty one behind the last. */
  print(): void {
    for (const [text, times] of this.#counts) console.log(`${times} ${text}`);
    console.log("");
  }
}
