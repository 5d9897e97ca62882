import { create, toBinary } from "@bufbuild/protobuf";
// oxfmt-ignore
import { Edition, FieldDescriptorProto_Label as Label, FieldDescriptorProto_Type as Type, FileDescriptorProtoSchema,
  FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { type FileInit, stringField } from "./file-init.ts";

/** An imported file `options.proto` that is invalid or missing. */
interface OptionalFile {
  readonly name: string;
  readonly files: readonly FileInit[];
  /** The error if a service needs `options.B`. The problem affects no other service. */
  readonly problem?: string;
}

const file = { name: "options.proto", package: "options" };
const type = { name: "B", field: [stringField("text", 1)] };

function invalid(name: string, content: Partial<FileInit>, problem: string): OptionalFile {
  const { messageType = [], ...more } = content;
  const files = [{ ...file, syntax: "proto3", ...more, messageType: [type, ...messageType] }];
  return { name: `a file ${name}`, files, problem };
}

/** Files that services may import if only options need the files. */
// oxfmt-ignore
export const optionalFiles: readonly OptionalFile[] = [
  { name: "missing", files: [] },
  { name: "an empty placeholder", files: [{ ...file, package: "" }] },
  { name: "a placeholder with an unknown syntax", files: [{ ...file, package: "", syntax: "<unknown:0>" }] },
  { name: "a placeholder with an unknown syntax, a package and an import",
    files: [{ ...file, syntax: "<unknown:0>", dependency: ["other.proto"] }] },
  { name: "a placeholder with an unknown syntax that an invalid file imports, too",
    files: [{ ...file, syntax: "<unknown:0>" }, { name: "other.proto", syntax: "<unknown:0>",
      dependency: ["options.proto"], messageType: [{ name: "Other" }] }] },
  invalid("with an unknown syntax", { syntax: "<unknown:0>" }, 'unsupported syntax "<unknown:0>"'),
  invalid("with an unknown edition", { syntax: "editions", edition: Edition.EDITION_99999_TEST_ONLY },
    "unsupported edition"),
  invalid("with a message without a valid name", { messageType: [{ name: "a-b" }] },
    '"a-b" is not a protobuf identifier'),
  invalid("with an enum without values", { enumType: [{ name: "Empty" }] }, "options.Empty has no values"),
  invalid("with a duplicate type", { messageType: [type] }, "options.B is defined more than once"),
  invalid("with a duplicate field number",
    { messageType: [{ name: "C", field: [stringField("a", 1), stringField("b", 1)] }] },
    "field b of options.C has number 1, which another field has already"),
  invalid("with a field of a oneof that does not exist",
    { messageType: [{ name: "C", field: [{ ...stringField("a", 1), oneofIndex: 3 }] }] }, "oneof #3"),
  invalid("with a field whose type is an enum and not a message",
    { enumType: [{ name: "Kind", value: [{ name: "KIND_UNSPECIFIED" }] }], messageType: [{ name: "C",
      field: [{ ...stringField("a", 1), type: Type.MESSAGE, typeName: ".options.Kind" }] }] }, "options.Kind"),
];

/** A file that imports `options.proto`, with a service `a.Whole` that needs no other file. */
// oxfmt-ignore
export const wholeService: FileInit = {
  name: "a.proto", package: "a", syntax: "proto3", dependency: ["options.proto", "other.proto"],
  messageType: [{ name: "Text", field: [stringField("text", 1)] }],
  service: [{ name: "Whole", method: [{ name: "Get", inputType: ".a.Text", outputType: ".a.Text" }] }],
};

/** The file {@link wholeService} with an additional service `a.Other`, which needs `options.B`. */
// oxfmt-ignore
export const withNeedingService: FileInit = { ...wholeService,
  messageType: [...(wholeService.messageType ?? []), { name: "Typed",
      field: [{ ...stringField("typed", 1), label: Label.OPTIONAL, type: Type.MESSAGE, typeName: ".options.B" }] }],
  service: [...(wholeService.service ?? []),
    { name: "Other", method: [{ name: "Get", inputType: ".a.Typed", outputType: ".a.Typed" }] }],
};

export function setOfFiles(files: readonly FileInit[]): Uint8Array {
  const protos = files.map((each) => create(FileDescriptorProtoSchema, each));
  return toBinary(FileDescriptorSetSchema, create(FileDescriptorSetSchema, { file: protos }));
}
