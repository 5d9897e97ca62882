import { create, toBinary } from "@bufbuild/protobuf";
import { WireType } from "@bufbuild/protobuf/wire";
import {
  FieldDescriptorProto_Label as Label,
  FieldDescriptorProto_Type as Type,
  FileDescriptorProtoSchema,
  FileDescriptorSetSchema,
  FileOptionsSchema,
} from "@bufbuild/protobuf/wkt";
import { describe, expect, test } from "vitest";
import { readDescriptorSet } from "../../../src/protobuf/descriptors/index.ts";
import { type FieldInit, type FileInit } from "../../../../testing/src/gateway/file-init.ts";

// Services are read from incomplete descriptor sets, too. Invalid sets, which protoc would never write, are refused.

function read(...files: readonly FileInit[]): ReturnType<typeof readDescriptorSet> {
  const set = create(FileDescriptorSetSchema, {
    file: files.map((file) => create(FileDescriptorProtoSchema, { syntax: "proto3", ...file })),
  });
  return readDescriptorSet(toBinary(FileDescriptorSetSchema, set));
}

function text(name = "text", number = 1): FieldInit {
  return { name, number, label: Label.OPTIONAL, type: Type.STRING };
}

function of(typeName: string, type = Type.MESSAGE): FieldInit {
  return { ...text("typed", 2), type, typeName };
}

/** A service `a.Name` whose RPC takes and returns a type. */
function service(name: string, type: string): NonNullable<FileInit["service"]>[number] {
  return { name, method: [{ name: "Get", inputType: type, outputType: type }] };
}

/** A file with two services: `a.Whole`, which needs no import, and `a.Other`, whose messages have the field. */
function withField(field: FieldInit, more: Partial<FileInit> = {}): FileInit {
  const messageType = [
    { name: "Text", field: [text()] },
    { name: "Typed", field: [text(), field] },
    ...(more.messageType ?? []),
  ];
  return {
    name: "a.proto",
    package: "a",
    dependency: ["b.proto"],
    service: [service("Whole", ".a.Text"), service("Other", ".a.Typed")],
    ...more,
    messageType,
  };
}

const customOption = { no: 50_001, wireType: WireType.Varint, data: Uint8Array.of(1) };
const b: FileInit = { name: "b.proto", package: "b", messageType: [{ name: "B", field: [text()] }] };
const both = ["a.Whole", "a.Other"];

test.each<{ readonly name: string; readonly files: readonly FileInit[]; readonly served?: readonly string[] }>([
  { name: "nothing is missing", files: [b, withField(of(".b.B"))], served: both },
  { name: "an imported file comes after the file that imports it", files: [withField(of(".b.B")), b], served: both },
  { name: "a file occurs twice", files: [b, withField(of(".b.B")), b], served: both },
  {
    name: "a missing file defines no used type",
    files: [withField(text("n", 2))],
    served: both,
  },
  {
    name: "an empty placeholder file defines no used type",
    files: [withField(text("n", 2)), { name: "b.proto" }],
    served: both,
  },
  {
    name: "files of google/protobuf are missing",
    files: [withField(of(".google.protobuf.Timestamp"), { dependency: ["google/protobuf/timestamp.proto"] })],
    served: both,
  },
  {
    name: "a type is in a file that is not imported",
    files: [withField(of(".b.B")), { ...b, name: "c.proto" }],
    served: both,
  },
  {
    name: "the type of an extension is missing",
    files: [withField(text("n", 2), { extension: [{ ...of(".b.B"), extendee: ".b.Options" }] })],
    served: both,
  },
  { name: "a message's file is missing", files: [withField(of(".b.B"))] },
  { name: "a message's file is an empty placeholder", files: [withField(of(".b.B")), { name: "b.proto" }] },
  { name: "a type name is a placeholder of Go", files: [withField(of("*.b.B"))] },
  { name: "an enum's file is missing", files: [withField(of(".b.Kind", Type.ENUM))] },
  {
    name: "the type of a nested message's field is missing",
    files: [withField(of(".b.B")), { ...b, messageType: [{ name: "B", field: [of(".c.C")] }] }],
  },
  {
    name: "an RPC's request and response types are missing",
    files: [
      {
        name: "a.proto",
        package: "a",
        messageType: [{ name: "Text" }],
        service: [service("Whole", ".a.Text"), service("Other", ".b.B")],
      },
    ],
  },
  {
    name: "a map's value type is missing",
    files: [
      withField(
        { ...of(".a.Map.TypedEntry"), label: Label.REPEATED },
        {
          messageType: [
            {
              name: "Map",
              nestedType: [
                {
                  name: "TypedEntry",
                  options: { mapEntry: true },
                  field: [text("key"), { ...of(".b.B"), name: "value" }],
                },
              ],
            },
          ],
        },
      ),
    ],
  },
])("if $name, readDescriptorSet() omits only services with missing types", ({ files, served = ["a.Whole"] }) => {
  const { services, omitted } = read(...files);
  expect(services.map(({ typeName }) => typeName)).toEqual(served);
  expect([...omitted.keys()]).toEqual(both.filter((name) => !served.includes(name)));
  for (const reason of omitted.values())
    expect(reason).toMatch(/^the type [^;]* is missing(?:; missing import: b\.proto)?$/);
});

test("missing JSON names are derived from the field names", () => {
  const [field] =
    read(withField(text("long_name_2", 2)), b)
      .types.getMessage("a.Typed")
      ?.fields.slice(1) ?? [];
  expect(field?.jsonName).toBe("longName2");
});

function one(message: NonNullable<FileInit["messageType"]>[number]): FileInit {
  return { name: "a.proto", messageType: [message] };
}

describe("readDescriptorSet()", () => {
  test.each<{ readonly name: string; readonly files: readonly FileInit[]; readonly says: string }>([
    {
      name: "a package name with a shell command",
      files: [{ name: "a.proto", package: "a;touch${IFS}x;b" }],
      says: '"a;touch${IFS}x;b" is not a protobuf identifier',
    },
    {
      name: "a package name with two dots in a row",
      files: [{ name: "a.proto", package: "a..b" }],
      says: '"" is not a protobuf identifier',
    },
    {
      name: "a message name with a dot",
      files: [one({ name: "A.B" })],
      says: '"A.B" is not a protobuf identifier',
    },
    {
      name: "a field name with a space",
      files: [one({ name: "A", field: [text("a b")] })],
      says: '"a b" is not a protobuf identifier',
    },
    {
      name: "a oneof name with a quotation mark",
      files: [one({ name: "A", oneofDecl: [{ name: "'" }] })],
      says: `"'" is not a protobuf identifier`,
    },
    {
      name: "a message name with a letter beyond ASCII",
      files: [one({ name: "Ä" })],
      says: '"Ä" is not a protobuf identifier',
    },
    {
      name: "an RPC name with a slash",
      files: [{ name: "a.proto", service: [{ name: "S", method: [{ name: "a/b" }] }] }],
      says: '"a/b" is not a protobuf identifier',
    },
    {
      name: "a service name that begins with a digit",
      files: [{ name: "a.proto", service: [{ name: "1S" }] }],
      says: '"1S" is not a protobuf identifier',
    },
    {
      name: "an enum value name with a hyphen",
      files: [{ name: "a.proto", enumType: [{ name: "E", value: [{ name: "a-b" }] }] }],
      says: '"a-b" is not a protobuf identifier',
    },
    {
      name: "an extension name with a hyphen",
      files: [{ name: "a.proto", extension: [text("a-b")] }],
      says: '"a-b" is not a protobuf identifier',
    },
    {
      name: "a nested extension name with a hyphen",
      files: [one({ name: "A", extension: [text("a-b")] })],
      says: '"a-b" is not a protobuf identifier',
    },
    {
      name: "a name longer than 1,000 characters",
      files: [one({ name: "A".repeat(1_001) })],
      says: "a name must not be longer than 1000 characters",
    },
    {
      name: "a duplicate field name",
      files: [one({ name: "A", field: [text("a", 1), text("a", 2)] })],
      says: "A has more than one member named a",
    },
    {
      name: "a duplicate field number",
      files: [one({ name: "A", field: [text("a", 1), text("b", 1)] })],
      says: "field b of A has number 1, which another field has already",
    },
    {
      name: "the field number 0",
      files: [one({ name: "A", field: [text("a", 0)] })],
      says: "the number of field a of A must be between 1 and 2147483647, got 0",
    },
    {
      name: "a negative field number",
      files: [one({ name: "A", field: [text("a", -1)] })],
      says: "the number of field a of A must be between 1 and 2147483647, got -1",
    },
    {
      name: "a duplicate RPC name",
      files: [{ name: "a.proto", service: [{ name: "S", method: [{ name: "M" }, { name: "M" }] }] }],
      says: "S has more than one member named M",
    },
    {
      name: "a duplicate enum value name",
      files: [{ name: "a.proto", enumType: [{ name: "E", value: [{ name: "V" }, { name: "V" }] }] }],
      says: "E has more than one member named V",
    },
    {
      name: "an enum without values",
      files: [{ name: "a.proto", enumType: [{ name: "E" }] }],
      says: "E has no values",
    },
    {
      name: "a type name that two files define",
      files: [one({ name: "A" }), { name: "b.proto", enumType: [{ name: "A", value: [{ name: "V" }] }] }],
      says: "A is defined more than once",
    },
    {
      name: "a duplicate nested type",
      files: [one({ name: "A", nestedType: [{ name: "B" }, { name: "B" }] })],
      says: "A.B is defined more than once",
    },
    {
      name: "a nested enum without values",
      files: [one({ name: "A", enumType: [{ name: "E" }] })],
      says: "A.E has no values",
    },
    {
      name: "a nested enum with the name of a nested message",
      files: [one({ name: "A", nestedType: [{ name: "B" }], enumType: [{ name: "B", value: [{ name: "V" }] }] })],
      says: "A.B is defined more than once",
    },
    {
      name: "a file name that two different files have",
      files: [b, { ...b, messageType: [{ name: "C" }] }],
      says: "file b.proto is defined more than once with different contents",
    },
    {
      name: "a file name that two files with different custom options have",
      files: [
        { ...b, options: { ...create(FileOptionsSchema), $unknown: [customOption] } },
        { ...b, options: {} },
      ],
      says: "file b.proto is defined more than once with different contents",
    },
    { name: "a file without a name", files: [{ package: "a" }], says: "a file has no name" },
    {
      name: "an import cycle",
      files: [
        { name: "a.proto", dependency: ["b.proto"] },
        { name: "b.proto", dependency: ["a.proto"] },
      ],
      says: "import cycle: a.proto -> b.proto -> a.proto",
    },
    {
      name: "a message with more than 10,000 fields",
      files: [one({ name: "A", field: Array.from({ length: 10_001 }, (_, at) => text(`f${at}`, at + 1)) })],
      says: "A has more than 10000 fields",
    },
    {
      name: "an enum with more than 10,000 values",
      files: [
        {
          name: "a.proto",
          enumType: [
            { name: "E", value: Array.from({ length: 10_001 }, (_, number) => ({ name: `V${number}`, number })) },
          ],
        },
      ],
      says: "E has more than 10000 values",
    },
  ])("$name is refused", ({ files, says }) => {
    expect(() => read(...files)).toThrow(says);
  });

  test.each([3_000, 100_000])("refuses messages that are nested %d levels deep", (levels) => {
    const pieces: Buffer[] = [];
    let length = 0;
    const wrap = (tag: number): void => {
      const head = Buffer.from([tag, ...varint(length)]);
      pieces.push(head);
      length += head.length;
    };
    for (let level = 0; level < levels; level += 1) wrap(0x1a);
    wrap(0x22);
    wrap(0x0a);
    expect(() => readDescriptorSet(Buffer.concat(pieces.toReversed()))).toThrow(
      // Older protobuf-es releases stop reading when the stack is full, so the file has no name.
      /^(?:messages must not be nested|a file has no name)/,
    );
  });
});

function varint(value: number): number[] {
  return value < 128 ? [value] : [(value % 128) + 128, ...varint(Math.floor(value / 128))];
}
