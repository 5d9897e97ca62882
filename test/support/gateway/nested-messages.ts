import { create, setExtension } from "@bufbuild/protobuf";
import {
  FieldDescriptorProto_Label as Label,
  FieldDescriptorProto_Type as Type,
  FieldOptionsSchema,
  type FileDescriptorProto,
  FileDescriptorProtoSchema,
  MethodOptionsSchema,
} from "@bufbuild/protobuf/wkt";
import { http } from "../../../src/gateway/gen/google/api/annotations_pb.ts";
import { field_behavior, FieldBehavior } from "../../../src/gateway/gen/google/api/field_behavior_pb.ts";
import { HttpRuleSchema } from "../../../src/gateway/gen/google/api/http_pb.ts";

/** What {@link nestedMessages} makes. */
export interface Nesting {
  /** Messages, each of which is inside the one before. */
  readonly levels: number;
  /** Fields of each, all of the next message; the last has texts. */
  readonly fields: number;
  /** Whether a request must set all of them. */
  readonly required?: boolean;
  /** How the first message is sent. Default: as a query. */
  readonly body?: "*";
}

/** Makes the file of a service `nested.Nested`, whose RPC takes messages inside messages at `/nested`. */
export function nestedMessages({ levels, fields, required = false, body }: Nesting): FileDescriptorProto {
  const options = create(FieldOptionsSchema);
  setExtension(options, field_behavior, [FieldBehavior.REQUIRED]);
  const methodOptions = create(MethodOptionsSchema);
  const pattern =
    body === undefined ? ({ case: "get", value: "/nested" } as const) : { case: "post" as const, value: "/nested" };
  setExtension(methodOptions, http, create(HttpRuleSchema, { pattern, body: body ?? "" }));
  const fieldOf = (level: number, at: number) => ({
    name: `f${at}`,
    jsonName: `f${at}`,
    number: at + 1,
    label: Label.OPTIONAL,
    ...(required && { options }),
    ...(level + 1 < levels ? { type: Type.MESSAGE, typeName: `.nested.L${level + 1}` } : { type: Type.STRING }),
  });
  return create(FileDescriptorProtoSchema, {
    name: "nested.proto",
    package: "nested",
    syntax: "proto3",
    dependency: ["google/api/annotations.proto", "google/api/field_behavior.proto"],
    messageType: Array.from({ length: levels }, (_, level) => ({
      name: `L${level}`,
      field: Array.from({ length: fields }, (_each, at) => fieldOf(level, at)),
    })),
    service: [
      {
        name: "Nested",
        method: [{ name: "Send", inputType: ".nested.L0", outputType: ".nested.L0", options: methodOptions }],
      },
    ],
  });
}
