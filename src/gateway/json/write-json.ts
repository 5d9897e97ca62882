import type { DescMessage, JsonWriteOptions, MessageShape } from "@bufbuild/protobuf";
import { toJsonString } from "@bufbuild/protobuf";

/** How a message is written; Connect's own options. */
export type WriteJsonOptions = Partial<JsonWriteOptions>;

/**
 * Writes a message as proto3 JSON text: 64-bit integers as strings, fields without a value left out.
 *
 * @throws Error when the message cannot be written: a Timestamp out of range, an Any whose type the
 * registry lacks. That is the handler's fault, never the client's
 */
export function writeJson<Desc extends DescMessage>(
  desc: Desc,
  message: MessageShape<Desc>,
  options?: WriteJsonOptions,
): string {
  return toJsonString(desc, message, options);
}
