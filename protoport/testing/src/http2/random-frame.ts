import type { Dice } from "../dice.ts";
import type { Field } from "../http/exchange.ts";
// oxfmt-ignore
import { dataFrame, frame, type Frame, frameBytes, frameFlag, frameType, headersFrame, resetFrame
} from "../http/http2-frames.ts";
import { begun, getBlock, settingFrame, uint32, whole, windowUpdateFrame } from "./http2-requests.ts";

const streamIds = [0, 1, 1, 1, 3, 3, 3, 5, 5, 7, 9, 2, 101, 2 ** 31 - 1];

/** Frames that are each valid without other frames. */
const valid: readonly ((dice: Dice, streamId: number) => Frame)[] = [
  (_, streamId) => whole(streamId),
  (_, streamId) => begun(streamId),
  (dice, streamId) => headersFrame(streamId, [["trailer", "x".repeat(dice.roll(50))]], frameFlag.endStream),
  (dice, streamId) => dataFrame(streamId, Buffer.alloc(dice.roll(20_000)), dice.roll(2)),
  (dice, streamId) => dataFrame(streamId, dice.bytes(20), dice.oneOf([0, frameFlag.endStream, frameFlag.padded])),
  (dice, streamId) => resetFrame(streamId, dice.roll(15)),
  (dice, streamId) => windowUpdateFrame(streamId, dice.oneOf([1, 100, 65_535, 2 ** 30, 0])),
  (dice) => settingFrame(dice.oneOf([1, 3, 4, 4, 4, 5, 6, 99]), dice.oneOf([0, 1, 100, 16_384, 65_535, 2 ** 31 - 1])),
  () => frame(frameType.settings, frameFlag.ack, 0),
  (dice) => frame(frameType.ping, dice.roll(2), 0, Buffer.from(dice.oneOf(["12345678", "draining"]))),
  (dice, streamId) => frame(frameType.priority, 0, streamId, Buffer.concat([uint32(dice.roll(9)), dice.bytes(1)])),
  (_, streamId) => frame(frameType.headers, frameFlag.endStream, streamId, getBlock.subarray(0, 20)),
  (dice, streamId) =>
    frame(frameType.continuation, dice.oneOf([0, frameFlag.endHeaders]), streamId, getBlock.subarray(20)),
  (dice, streamId) => frame(frameType.headers, frameFlag.endHeaders, streamId, dice.bytes(60)),
  (dice) => frame(frameType.goAway, 0, 0, uint32(dice.roll(9), dice.roll(15))),
];

const responseHead: readonly Field[] = [
  [":status", "200"],
  ["content-type", "application/grpc"],
];

/** Valid frames that a server sends, which are responses, and frames that both sides send. */
const validResponses: typeof valid = [
  (_, streamId) => headersFrame(streamId, responseHead),
  (_, streamId) => headersFrame(streamId, responseHead),
  (_, streamId) => headersFrame(streamId, [...responseHead, ["grpc-status", "0"]], frameFlag.endStream),
  (_, streamId) => headersFrame(streamId, [["grpc-status", "0"]], frameFlag.endStream),
  (dice, streamId) => headersFrame(streamId, [[":status", dice.oneOf(["100", "101", "503", "x"])]], dice.roll(2)),
  (_, streamId) => frame(frameType.pushPromise, frameFlag.endHeaders, streamId, uint32(2)),
  ...valid.slice(2),
];

/** Returns a client frame's bytes. The frame is valid without other frames. One frame in twelve is corrupted. */
export const randomFrame = (dice: Dice): Buffer => corrupt(dice, dice.oneOf(streamIds), valid);
/** Returns a server frame's bytes. One frame in twelve is corrupted. */
export const randomResponseFrame = (dice: Dice): Buffer => corrupt(dice, dice.oneOf(streamIds), validResponses);

function corrupt(dice: Dice, streamId: number, choices: typeof valid): Buffer {
  const bytes = frameBytes(dice.oneOf(choices)(dice, streamId));
  if (dice.roll(12) > 0) return bytes;
  // The frame is corrupted at a random position, often in the frame header.
  bytes[dice.roll(Math.min(bytes.byteLength, dice.oneOf([9, 9, 60])))] = dice.roll(256);
  return dice.roll(4) === 0 ? bytes.subarray(0, dice.roll(bytes.byteLength)) : bytes;
}
