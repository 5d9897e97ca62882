import type { BodyPlan } from "../../http/index.ts";
import type { Codec } from "../formats/format.ts";
import type { Rpc } from "../rpc.ts";
import { envelopeBytes, envelopePrefixBytes } from "../envelope/envelope.ts";

/** Returns the plan for reading a body with one envelope. */
export function planEnvelope(codec: Codec, { options, callee }: Rpc): BodyPlan {
  const memory = codec.isBinary === true ? callee.memory : "own";
  return { limitBytes: envelopePrefixBytes + options.readMaxBytes, memory, announcedBytes: envelopeBytes };
}
