import type { Outcome } from "./script.ts";

export interface Streams {
  readonly echo: (pieces: AsyncIterable<Piece>) => AsyncIterable<Piece>;
  readonly count: (pieces: number) => AsyncIterable<Piece>;
  readonly outcomeOf: (error: unknown) => Outcome;
}

type Piece = { readonly number: number; readonly content: Uint8Array };
/** How many calls are concurrent. */
const callers = 64;
const content = new Uint8Array(64 * 1024);

/** Deletes plants 1, 2, 3 … for some seconds, and prints each outcome's count; "#" stands for the plant. */
export async function callFor(seconds: number, deletePlant: (id: bigint) => Promise<Outcome>): Promise<void> {
  const counts = new Counts();
  let ids = 0n;
  const callOne = async (): Promise<void> => {
    ids += 1n;
    const id = ids;
    const { code, message } = await deletePlant(id);
    counts.add(`${code} ${message.replace(String(id), "#")}`);
  };
  // Some clients would open a connection for each call while there is none.
  await callOne();
  const untilMs = performance.now() + seconds * 1000;
  const caller = async (): Promise<void> => {
    while (performance.now() < untilMs) await callOne();
  };
  await Promise.all(Array.from({ length: callers }, caller));
  counts.print();
}

/** Sends messages, reads those that come back, and prints how many messages there were by size, and the outcome. */
export async function echo(pieces: number, streams: Streams): Promise<void> {
  const send = async function* (): AsyncIterable<Piece> {
    for (let number = 0; number < pieces; number++) yield { number, content };
  };
  await read(streams.echo(send()), streams);
}

/** Requests messages, and prints how many messages there were by size, and the outcome. */
export async function count(pieces: number, streams: Streams): Promise<void> {
  await read(streams.count(pieces), streams);
}

async function read(pieces: AsyncIterable<Piece>, { outcomeOf }: Streams): Promise<void> {
  const counts = new Counts();
  let outcome: Outcome = { code: 0, message: "" };
  let expected = 0;
  try {
    for await (const piece of pieces) {
      const isExpected = piece.number === expected;
      counts.add(isExpected ? `${piece.content.length} bytes` : `number ${piece.number} for ${expected}`);
      expected++;
    }
  } catch (error) {
    outcome = outcomeOf(error);
  }
  counts.add(`${outcome.code} ${outcome.message}`);
  counts.print();
}

class Counts {
  readonly #counts = new Map<string, number>();

  add(result: string): void {
    const text = result.trim();
    this.#counts.set(text, (this.#counts.get(text) ?? 0) + 1);
  }

  /** Prints a line for each text, and an empty line. */
  print(): void {
    for (const [text, times] of this.#counts) console.log(`${times} ${text}`);
    console.log("");
  }
}
