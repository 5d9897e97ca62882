import type { BodyPlan } from "@plantstore/http";
import type { Codec } from "../formats/format.ts";
import type { Rpc } from "../rpc.ts";
import { envelopeBytes, envelopePrefixBytes, isLargeEnvelope } from "./envelope.ts";

/** Returns the plan for reading a body with one envelope. */
export function planEnvelope(codec: Codec, { options, forward }: Rpc): BodyPlan {
  const plan = { limitBytes: envelopePrefixBytes + options.readMaxBytes, announcedBytes: envelopeBytes };
  if (forward === undefined || codec.isBinary !== true) return { ...plan, memory: "own" };
  return { ...plan, memory: forward.memory, isLarge: forward.takesParts ? isLargeEnvelope : undefined };
}
