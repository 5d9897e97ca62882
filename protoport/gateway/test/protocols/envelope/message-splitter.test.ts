import { expect, test } from "vitest";
import { type MessageSplitter, readMessages } from "../../../src/protocols/envelope/message-splitter.ts";

/** Splits pieces into bytes. Throws for 0, and returns a promise for a byte above 100. */
class OctetReader implements MessageSplitter<number> {
  #octets: number[] = [];

  add(piece: Uint8Array): void {
    this.#octets = [...piece];
  }

  take(): number | Promise<number> | undefined {
    const octet = this.#octets.shift();
    if (octet === 0) throw new Error("zero");
    return octet !== undefined && octet > 100 ? new Promise((resolve) => setTimeout(resolve, 0, octet)) : octet;
  }

  end(): number {
    return -1;
  }
}

function open(pieces: readonly number[][]) {
  const state = { closed: false };
  const body = async function* (): AsyncGenerator<Uint8Array> {
    try {
      for (const piece of pieces) yield Uint8Array.from(piece);
    } finally {
      // Closing a body waits for its resources.
      await new Promise(setImmediate);
      state.closed = true;
    }
  };
  return { state, messages: readMessages(body(), new OctetReader())[Symbol.asyncIterator]() };
}

const all = async (messages: AsyncIterator<number>): Promise<number[]> => {
  const found: number[] = [];
  for await (const message of { [Symbol.asyncIterator]: () => messages }) found.push(message);
  return found;
};

test("readMessages() yields the messages of all chunks in order", async () => {
  const { state, messages } = open([[1, 101, 2], [], [3]]);
  expect(await all(messages)).toEqual([1, 101, 2, 3, -1]);
  expect([state.closed, await messages.next()]).toEqual([true, { done: true, value: undefined }]);
});

test("readMessages() yields messages in order to concurrent next() calls", async () => {
  const { messages } = open([[7, 101, 102, 1], [2]]);
  await messages.next();
  const came: unknown[] = [];
  const ask = async (): Promise<void> => void came.push((await messages.next()).value);
  const [first, second] = [ask(), ask()];
  await first;
  // The next calls are made while the promise of the second is pending.
  await Promise.all([second, ask(), ask(), ask(), ask()]);
  expect(came).toEqual([101, 102, 1, 2, -1, undefined]);
});

test.each([{ piece: [1, 0, 2] }, { piece: [101, 0] }])(
  "readMessages() throws the error of a malformed message in the chunk $piece",
  async ({ piece }) => {
    const { state, messages } = open([piece, [3]]);
    await messages.next();
    await expect(messages.next()).rejects.toThrow("zero");
    expect([state.closed, await messages.next()]).toEqual([true, { done: true, value: undefined }]);
  },
);

test("readMessages() closes the body when the reader stops", async () => {
  const { state, messages } = open([[1, 2], [3]]);
  await messages.next();
  await messages.return?.();
  expect([state.closed, await messages.next()]).toEqual([true, { done: true, value: undefined }]);
});
