import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { EnumValueOptionsSchema } from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import { HiddenParts, readDescriptorSet } from "../../../src/protobuf/descriptors/index.ts";
import { descriptorSetOf } from "../../../../testing/src/gateway/descriptor-set.ts";
import { restrictedTo } from "../../../../testing/src/gateway/restricted.ts";
// oxfmt-ignore
import { Color, file_kitchensink_v1_kitchen_sink, SinkSchema
} from "../../../../testing/src/gen/kitchensink/v1/kitchen_sink_pb.ts";

const proto = structuredClone(file_kitchensink_v1_kitchen_sink.proto);
for (const value of proto.enumType.flatMap((desc) => desc.value))
  if (value.name === "COLOR_RED") value.options = restrictedTo("INTERNAL", EnumValueOptionsSchema);
const definition = readDescriptorSet(descriptorSetOf({ ...file_kitchensink_v1_kitchen_sink, proto }), { allow: [] });

test.each<[name: string, sent: MessageInitShape<typeof SinkSchema>, want: MessageInitShape<typeof SinkSchema>]>([
  ["a field", { maybeEnum: Color.RED }, {}],
  ["a oneof", { choice: { case: "choiceEnum", value: Color.RED } }, {}],
  ["a list", { colors: [Color.RED, Color.UNSPECIFIED] }, { colors: [Color.UNSPECIFIED] }],
  ["a map", { palette: { a: Color.RED, b: Color.UNSPECIFIED } }, { palette: { b: Color.UNSPECIFIED } }],
])("HiddenParts removes a hidden enum value from %s", (_name, sent, want) => {
  const desc = definition.types.getMessage(SinkSchema.typeName) ?? expect.unreachable();
  const message = create(SinkSchema, sent);
  HiddenParts.of([definition], undefined)?.removeFrom(desc, message);
  expect(message).toEqual(create(SinkSchema, want));
});
