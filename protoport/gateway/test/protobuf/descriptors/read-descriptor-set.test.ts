import { create, toBinary } from "@bufbuild/protobuf";
import { WireType } from "@bufbuild/protobuf/wire";
// oxfmt-ignore
import { FieldDescriptorProto_Label as Label, FieldDescriptorProto_Type as Type, FileDescriptorProtoSchema,
  FileDescriptorSetSchema, FileOptionsSchema } from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import { readDescriptorSet } from "../../../src/protobuf/descriptors/index.ts";
import type { FieldInit, FileInit } from "../../../../testing/src/gateway/file-init.ts";
import { declaredNames } from "../../../src/protobuf/descriptors/parse-files.ts";

// Services are read from incomplete descriptor sets, too. Invalid sets, which protoc would never write, are refused.

function read(...files: readonly FileInit[]): ReturnType<typeof readDescriptorSet> {
  const set = create(FileDescriptorSetSchema, {
    file: files.map((file) => create(FileDescriptorProtoSchema, { syntax: "proto3", ...file })),
  });
  return readDescriptorSet(toBinary(FileDescriptorSetSchema, set));
}

const text = (name = "text", number = 1): FieldInit => ({ name, number, label: Label.OPTIONAL, type: Type.STRING });
const of = (typeName: string, type = Type.MESSAGE): FieldInit => ({ ...text("typed", 2), type, typeName });

/** A service `a.Name` whose RPC takes and returns a type. */
function service(name: string, type: string): NonNullable<FileInit["service"]>[number] {
  return { name, method: [{ name: "Get", inputType: type, outputType: type }] };
}

/** A file with two services: `a.Whole`, which needs no import, and `a.Other`, whose messages have the field. */
function withField(field: FieldInit, more: Partial<FileInit> = {}): FileInit {
  const typed = { name: "Typed", field: [text(), field] };
  const messageType = [{ name: "Text", field: [text()] }, typed, ...(more.messageType ?? [])];
  const services = [service("Whole", ".a.Text"), service("Other", ".a.Typed")];
  return { name: "a.proto", package: "a", dependency: ["b.proto"], service: services, ...more, messageType };
}

const customOption = { no: 50_001, wireType: WireType.Varint, data: Uint8Array.of(1) };
const b: FileInit = { name: "b.proto", package: "b", messageType: [{ name: "B", field: [text()] }] };
const both = ["a.Whole", "a.Other"];

test.each<[name: string, files: readonly FileInit[], served?: readonly string[]]>(
  // oxfmt-ignore
  [
    ["nothing is missing", [b, withField(of(".b.B"))], both],
    ["an imported file comes after the file that imports it", [withField(of(".b.B")), b], both],
    ["a file occurs twice", [b, withField(of(".b.B")), b], both],
    ["a missing file defines no used type", [withField(text("n", 2))], both],
    ["an empty placeholder file defines no used type", [withField(text("n", 2)), { name: "b.proto" }], both],
    ["files of google/protobuf are missing",
      [withField(of(".google.protobuf.Timestamp"), { dependency: ["google/protobuf/timestamp.proto"] })], both],
    ["a type is in a file that is not imported", [withField(of(".b.B")), { ...b, name: "c.proto" }], both],
    ["the type of an extension is missing",
      [withField(text("n", 2), { extension: [{ ...of(".b.B"), extendee: ".b.Options" }] })], both],
    ["a message's file is missing", [withField(of(".b.B"))]],
    ["a message's file is an empty placeholder", [withField(of(".b.B")), { name: "b.proto" }]],
    ["a type name is a placeholder of Go", [withField(of("*.b.B"))]],
    ["an enum's file is missing", [withField(of(".b.Kind", Type.ENUM))]],
    ["the type of a nested message's field is missing",
      [withField(of(".b.B")), { ...b, messageType: [{ name: "B", field: [of(".c.C")] }] }]],
    ["an RPC's request and response types are missing", [
        { name: "a.proto",
          package: "a",
          messageType: [{ name: "Text" }],
          service: [service("Whole", ".a.Text"), service("Other", ".b.B")],
        },
      ]],
    ["a map's value type is missing", [
        withField(
          { ...of(".a.Map.TypedEntry"), label: Label.REPEATED },
          { messageType: [
              { name: "Map",
                nestedType: [
                  { name: "TypedEntry",
                    options: { mapEntry: true },
                    field: [text("key"), { ...of(".b.B"), name: "value" }],
                  },
                ],
              },
            ],
          },
        ),
      ]],
  ],
)("if %s, readDescriptorSet() omits only services with missing types", (_name, files, served = ["a.Whole"]) => {
  const { services, omitted } = read(...files);
  expect(services.map(({ typeName }) => typeName)).toEqual(served);
  expect([...omitted.keys()]).toEqual(both.filter((name) => !served.includes(name)));
  for (const reason of omitted.values())
    expect(reason).toMatch(/^the type [^;]* is missing(?:; missing import: b\.proto)?$/);
});

test("missing JSON names are derived from the field names", () => {
  const { types } = read(withField(text("long_name_2", 2)), b);
  expect(types.getMessage("a.Typed")?.fields[1]?.jsonName).toBe("longName2");
});

function one(message: NonNullable<FileInit["messageType"]>[number]): FileInit {
  return { name: "a.proto", messageType: [message] };
}

test.each<[name: string, files: readonly FileInit[], says: string]>(
  // oxfmt-ignore
  [
      ["a package name with a shell command", [{ name: "a.proto", package: "a;touch${IFS}x;b" }],
        '"a;touch${IFS}x;b" is not a protobuf identifier'],
      ["a package name with two dots in a row", [{ name: "a.proto", package: "a..b" }],
        '"" is not a protobuf identifier'],
      ["a message name with a dot", [one({ name: "A.B" })], '"A.B" is not a protobuf identifier'],
      ["a field name with a space", [one({ name: "A", field: [text("a b")] })], '"a b" is not a protobuf identifier'],
      ["a oneof name with a quotation mark", [one({ name: "A", oneofDecl: [{ name: "'" }] })],
        `"'" is not a protobuf identifier`],
      ["a message name with a letter beyond ASCII", [one({ name: "Ä" })], '"Ä" is not a protobuf identifier'],
      ["an RPC name with a slash", [{ name: "a.proto", service: [{ name: "S", method: [{ name: "a/b" }] }] }],
        '"a/b" is not a protobuf identifier'],
      ["a service name that begins with a digit", [{ name: "a.proto", service: [{ name: "1S" }] }],
        '"1S" is not a protobuf identifier'],
      ["an enum value name with a hyphen", [{ name: "a.proto", enumType: [{ name: "E", value: [{ name: "a-b" }] }] }],
        '"a-b" is not a protobuf identifier'],
      ["an extension name with a hyphen", [{ name: "a.proto", extension: [text("a-b")] }],
        '"a-b" is not a protobuf identifier'],
      ["a nested extension name with a hyphen", [one({ name: "A", extension: [text("a-b")] })],
        '"a-b" is not a protobuf identifier'],
      ["a name longer than 1,000 characters", [one({ name: "A".repeat(1_001) })],
        "a name must not be longer than 1000 characters"],
      ["a duplicate field name", [one({ name: "A", field: [text("a", 1), text("a", 2)] })],
        "A has more than one member named a"],
      ["a duplicate field number", [one({ name: "A", field: [text("a", 1), text("b", 1)] })],
        "field b of A has number 1, which another field has already"],
      ["the field number 0", [one({ name: "A", field: [text("a", 0)] })],
        "the number of field a of A must be between 1 and 2147483647, got 0"],
      ["a negative field number", [one({ name: "A", field: [text("a", -1)] })],
        "the number of field a of A must be between 1 and 2147483647, got -1"],
      ["a duplicate RPC name", [{ name: "a.proto", service: [{ name: "S", method: [{ name: "M" }, { name: "M" }] }] }],
        "S has more than one member named M"],
      ["a duplicate enum value name",
        [{ name: "a.proto", enumType: [{ name: "E", value: [{ name: "V" }, { name: "V" }] }] }],
        "E has more than one member named V"],
      ["an enum without values", [{ name: "a.proto", enumType: [{ name: "E" }] }], "E has no values"],
      ["a type name that two files define",
        [one({ name: "A" }), { name: "b.proto", enumType: [{ name: "A", value: [{ name: "V" }] }] }],
        "A is defined more than once"],
      ["a duplicate nested type", [one({ name: "A", nestedType: [{ name: "B" }, { name: "B" }] })],
        "A.B is defined more than once"],
      ["a nested enum without values", [one({ name: "A", enumType: [{ name: "E" }] })], "A.E has no values"],
      ["a nested enum with the name of a nested message",
        [one({ name: "A", nestedType: [{ name: "B" }], enumType: [{ name: "B", value: [{ name: "V" }] }] })],
        "A.B is defined more than once"],
      ["a file name that two different files have", [b, { ...b, messageType: [{ name: "C" }] }],
        "file b.proto is defined more than once with different contents"],
      ["a file name that two files with different custom options have",
        [{ ...b, options: { ...create(FileOptionsSchema), $unknown: [customOption] } }, { ...b, options: {} }],
        "file b.proto is defined more than once with different contents"],
      ["a file without a name", [{ package: "a" }], "a file has no name"],
      ["an import cycle", [{ name: "a.proto", dependency: ["b.proto"] }, { name: "b.proto", dependency: ["a.proto"] }],
        "import cycle: a.proto -> b.proto -> a.proto"],
      ["a message with more than 10,000 fields",
        [one({ name: "A", field: Array.from({ length: 10_001 }, (_, at) => text(`f${at}`, at + 1)) })],
        "A has more than 10000 fields"],
      ["an enum with more than 10,000 values", [
          { name: "a.proto",
            enumType: [
              { name: "E", value: Array.from({ length: 10_001 }, (_, number) => ({ name: `V${number}`, number })) },
            ],
          },
        ], "E has more than 10000 values"],
    ],
)("readDescriptorSet() %s is refused", (_name, files, says) => expect(() => read(...files)).toThrow(says));

test.each([3_000, 100_000])("readDescriptorSet() refuses messages that are nested %d levels deep", (levels) => {
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

const varint = (value: number): number[] =>
  value < 128 ? [value] : [(value % 128) + 128, ...varint(Math.floor(value / 128))];

test("declaredNames returns the services and RPCs in all files", () => {
  const file = [
    { name: "a.proto", package: "a.v1", service: [{ name: "One", method: [{ name: "Get" }, { name: "List" }] }] },
    { name: "b.proto", service: [{ name: "Two", method: [{ name: "Get" }] }, { name: "Three" }] },
  ];
  const want = { services: ["a.v1.One", "Two", "Three"], rpcs: ["a.v1.One.Get", "a.v1.One.List", "Two.Get"] };
  expect(declaredNames(toBinary(FileDescriptorSetSchema, create(FileDescriptorSetSchema, { file })))).toEqual(want);
});

test("declaredNames rejects bytes that are not protobuf", () =>
  expect(() => declaredNames(new TextEncoder().encode("syntax = "))).toThrow());
