import * as fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { encodeBlock } from "../../../../../src/engine/http2/hpack/encoder.ts";
import type { Http2Stream } from "../../../../../src/engine/http2/http2-stream.ts";
import { HpackDecoder } from "../../../../../src/engine/http2/hpack/decoder.ts";
// oxfmt-ignore
import { dataFrame, type Field, frame, type Frame, frameFlag, frameType, headersFrame, openFrames
} from "@protoport/testing/http";
// oxfmt-ignore
import { answer, echo, type Engine, pipe, receiving, startEngine, statusBlock
} from "../../../../../../testing/src/http2/http2-engine.ts";
import { postHeader } from "../../../../../../testing/src/http2/http2-requests.ts";
import { Dice, numRunsOf } from "@protoport/testing/process";

// Each stream is a script that lists what its client sends, in order. When a stream's frames are interleaved with
// others, it must get the same response as alone on a connection. The bodies are smaller than any window, so nothing is
// queued.

/** A client's steps on a stream. A step's frames are sent together. */
type Script = readonly ((streamId: number) => readonly Frame[])[];

/** The output for a stream: its header sections, its body's bytes, and its end. */
type Transcript = { readonly sections: string[][]; body: Buffer; end: string | undefined };

/** The handlers by path. Their output does not depend on when the request's pieces arrive. */
const ways: Readonly<Record<string, (stream: Http2Stream) => void>> = {
  "/echo": echo,
  "/pipe": pipe,
  "/late": (stream) => {
    stream.receiver = receiving(stream, { onEnd: () => setImmediate(() => answer(stream, Buffer.from("late"))) });
  },
  "/early": (stream) => {
    stream.receiver = receiving(stream);
    answer(stream, Buffer.from("early"));
  },
  "/pieces": (stream) => {
    stream.receiver = receiving(stream, {
      onEnd: () => {
        stream.sendHeaders([statusBlock(200), encodeBlock(["piece", "by piece"])], false);
        for (let i = 0; i < 20; i++) stream.sendData(Buffer.alloc(i * 30, String(i)));
        stream.end(undefined, encodeBlock(["trailer", "yes"]));
      },
    });
  },
  "/fault": (stream) => {
    stream.receiver = receiving(stream, {
      onEnd: () => {
        throw new Error("a fault of who serves this stream");
      },
    });
  },
};

function randomScript(dice: Dice): Script {
  const path: Field = [":path", dice.oneOf(Object.keys(ways))];
  const header = postHeader().map((field): Field => (field[0] === ":path" ? path : field));
  const pieces = Array.from({ length: dice.roll(4) }, () => dice.bytes(300));
  const bytes = pieces.reduce((sum, piece) => sum + piece.byteLength, 0);
  const wrongLength: Field = ["content-length", String(bytes + 1)];
  const rightLength: Field = ["content-length", String(bytes)];
  const more = dice.oneOf<readonly Field[]>([[], [], [rightLength], [wrongLength], [["Upper", "case"]], [["x", "y"]]]);
  return [
    dice.roll(2) === 0 ? inOneFrame([...header, ...more]) : inManyFrames([...header, ...more], 20 + dice.roll(100)),
    ...pieces.map((piece) => (dice.roll(2) === 0 ? plain(piece) : padded(piece, dice.roll(200)))),
    dice.roll(2) === 0 ? lastData : trailerSection,
  ];
}

const inOneFrame =
  (header: readonly Field[]): Script[number] =>
  (id) => [headersFrame(id, header)];

function inManyFrames(header: readonly Field[], bytes: number): Script[number] {
  const block = headersFrame(1, header).payload;
  const count = Math.ceil(block.byteLength / bytes);
  return (id) =>
    Array.from({ length: count }, (_, i) => {
      const type = i === 0 ? frameType.headers : frameType.continuation;
      const flags = i === count - 1 ? frameFlag.endHeaders : 0;
      return frame(type, flags, id, block.subarray(i * bytes, (i + 1) * bytes));
    });
}

const plain =
  (piece: Buffer): Script[number] =>
  (id) => [dataFrame(id, piece)];

function padded(piece: Buffer, padding: number): Script[number] {
  const payload = Buffer.concat([Buffer.of(padding), piece, Buffer.alloc(padding)]);
  return (id) => [dataFrame(id, payload, frameFlag.padded)];
}

const lastData: Script[number] = (id) => [dataFrame(id, Buffer.alloc(0), frameFlag.endStream)];
const trailerSection: Script[number] = (id) => [headersFrame(id, [["last", "words"]], frameFlag.endStream)];

/** Sends the steps of all scripts, in the order that `choose` returns, and returns the output for each. */
async function play(
  engine: Engine,
  scripts: readonly Script[],
  choose: (below: number) => number,
): Promise<Transcript[]> {
  using connection = await openFrames(engine.address);
  const waiting = scripts.map((script, index) => ({ index, steps: [...script], id: 0 }));
  const numbers = new Map<number, number>();
  while (waiting.length > 0) {
    const at = choose(waiting.length);
    const one = waiting[at];
    const step = one?.steps.shift();
    if (one === undefined || step === undefined) {
      waiting.splice(at, 1);
      continue;
    }
    // Stream identifiers ascend in the order in which streams are opened (RFC 9113 §5.1.1).
    if (one.id === 0) numbers.set((one.id = numbers.size * 2 + 1), one.index);
    connection.send(...step(one.id));
  }
  const transcripts = scripts.map((): Transcript => ({ sections: [], body: Buffer.alloc(0), end: undefined }));
  const decoder = new HpackDecoder(100_000);
  while (transcripts.some(({ end }) => end === undefined)) {
    const next = await connection.readFrame();
    if (next === undefined || next.type === frameType.goAway) throw new Error("the connection has closed");
    const transcript = transcripts[numbers.get(next.streamId) ?? -1];
    if (transcript !== undefined) write(transcript, next, decoder);
  }
  return transcripts;
}

function write(transcript: Transcript, { type, flags, payload }: Frame, decoder: HpackDecoder): void {
  // After an early response, the stream may still be reset because the rest of its request was malformed.
  if (type === frameType.windowUpdate || (type === frameType.resetStream && transcript.end !== undefined)) return;
  expect(transcript.end, "there is no output after the end").toBeUndefined();
  if (type === frameType.headers) transcript.sections.push([...decoder.decode(payload, 0, payload.byteLength).fields]);
  else if (type === frameType.data) transcript.body = Buffer.concat([transcript.body, payload]);
  if (type === frameType.resetStream) transcript.end = `reset ${String(payload.readUInt32BE(0))}`;
  else if ((flags & frameFlag.endStream) !== 0) transcript.end = "ended";
}

describe("interleaved streams", () => {
  let engine: Engine;
  beforeAll(async () => {
    engine = await startEngine({
      serve: (stream, { path }) => ways[path]?.(stream),
      limits: { resets: 1e9, emptyData: 1e9, ignoredFrames: 1e9 },
      onFault: () => {},
    });
  });
  afterAll(() => engine[Symbol.asyncDispose]());

  test("get the same frames as streams that are sent alone", async () => {
    const property = fc.asyncProperty(fc.nat({ max: 2 ** 31 }), async (seed) => {
      const dice = new Dice(seed);
      const scripts = Array.from({ length: 2 + dice.roll(8) }, () => randomScript(dice));
      const together = await play(engine, scripts, (below) => dice.roll(below));
      for (const [i, script] of scripts.entries()) {
        const [alone] = await play(engine, [script], () => 0);
        expect(together[i]).toStrictEqual(alone);
      }
    });
    await fc.assert(property, { numRuns: numRunsOf(20) });
  });
});
