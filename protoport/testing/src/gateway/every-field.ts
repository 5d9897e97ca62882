import type { MessageInitShape } from "@bufbuild/protobuf";
import { Color, type Sink, type SinkSchema } from "../gen/kitchensink/v1/kitchen_sink_pb.ts";

/** A kitchen sink with every kind of field that the fast reader and the fast writer support. */
// oxfmt-ignore
export const everyField: Exclude<MessageInitShape<typeof SinkSchema>, Sink> = {
  fInt64: -1n, fDouble: 0.5, fFloat: 0.5, fBool: true, fString: "é", fBytes: Uint8Array.of(0, 255), fEnum: Color.RED,
  fInt32: -1, fUint32: 4_294_967_295, fUint64: 2n ** 64n - 1n, fSint32: -1, fSint64: -1n, fFixed32: 1, fFixed64: 1n,
  fSfixed32: -1, fSfixed64: -1n, maybeInt64: 0n, ids: [1n, -1n], tags: ["", "a"], colors: [Color.GREEN],
  doubles: [1, 2], blobs: [Uint8Array.of(1)], nesteds: [{ text: "a" }, {}], labels: { a: "b", "": "" },
  nestedById: { "7": { number: 7n } }, counts: { true: 1, false: 2 }, palette: { a: Color.RED },
  blobByName: { a: Uint8Array.of(1) }, nested: { text: "a", number: 1n }, wInt64: 5n, time: { seconds: 1n, nanos: 1 },
  choice: { case: "choiceText", value: "a" },
};
