import type { BodyPlan } from "@plantstore/http";
import type { Codec } from "../formats/format.ts";
import type { Rpc } from "../rpc.ts";
import { envelopeBytes, envelopePrefixBytes } from "./envelope.ts";

/** Returns the plan for reading a body with one envelope. */
export function planEnvelope(codec: Codec, { options, forward }: Rpc): BodyPlan {
  const memory = forward === undefined || codec.isBinary !== true ? "own" : forward.memory;
  return { limitBytes: envelopePrefixBytes + options.readMaxBytes, memory, announcedBytes: envelopeBytes };
}
