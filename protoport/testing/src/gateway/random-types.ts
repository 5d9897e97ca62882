import { create, createFileRegistry, type DescMessage, type MessageInitShape } from "@bufbuild/protobuf";
// oxfmt-ignore
import { Edition, FeatureSet_EnumType, FeatureSet_FieldPresence, FeatureSet_MessageEncoding,
  FeatureSet_RepeatedFieldEncoding, FeatureSet_Utf8Validation, FieldDescriptorProto_Label as Label,
  FieldDescriptorProto_Type as Type, type FieldDescriptorProtoSchema, FieldOptions_JSType, FileDescriptorProtoSchema,
  FileDescriptorSetSchema, file_google_protobuf_descriptor, file_google_protobuf_struct, file_google_protobuf_timestamp,
  file_google_protobuf_wrappers, type DescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import type { Dice } from "../dice.ts";

type Field = Exclude<MessageInitShape<typeof FieldDescriptorProtoSchema>, { $typeName: string }>;
type MessageType = Exclude<MessageInitShape<typeof DescriptorProtoSchema>, { $typeName: string }>;
type Syntax = "proto2" | "proto3" | "editions";

const imports = [
  file_google_protobuf_descriptor,
  file_google_protobuf_struct,
  file_google_protobuf_timestamp,
  file_google_protobuf_wrappers,
];

/** Types from other files, each with special handling in protobuf-es. */
const wellKnown = ["Timestamp", "Struct", "Value", "ListValue", "Int64Value", "StringValue", "BytesValue", "BoolValue"];

// oxfmt-ignore
const scalars = [
  Type.DOUBLE, Type.FLOAT, Type.INT64, Type.UINT64, Type.INT32, Type.FIXED64, Type.FIXED32, Type.BOOL, Type.STRING,
  Type.BYTES, Type.UINT32, Type.SFIXED32, Type.SFIXED64, Type.SINT32, Type.SINT64,
];
const mapKeys = scalars.filter((type) => ![Type.DOUBLE, Type.FLOAT, Type.BYTES].includes(type));
const longs = [Type.INT64, Type.UINT64, Type.FIXED64, Type.SFIXED64, Type.SINT64];
const messagesPerFile = 3;
const maxFields = 12;

/** Returns a random file's types, in a random syntax, with every kind of field. */
export function randomTypes(dice: Dice): readonly DescMessage[] {
  const syntax = dice.oneOf<Syntax>(["proto2", "proto3", "editions"]);
  const file = create(FileDescriptorProtoSchema, {
    name: "random.proto",
    package: "random",
    syntax,
    dependency: imports.map(({ proto }) => proto.name),
    enumType: [
      {
        name: "Kind",
        value: [0, 1, 2, 300, -1].map((number) => ({ name: `KIND_${number < 0 ? "LESS" : number}`, number })),
      },
    ],
    messageType: Array.from({ length: messagesPerFile }, (_, n) => randomMessage(`M${n}`, syntax, dice)),
  });
  if (syntax === "editions") {
    file.edition = Edition.EDITION_2023;
    const { DELIMITED, LENGTH_PREFIXED } = FeatureSet_MessageEncoding;
    const { PACKED, EXPANDED } = FeatureSet_RepeatedFieldEncoding;
    const features = {
      enumType: dice.oneOf([FeatureSet_EnumType.OPEN, FeatureSet_EnumType.CLOSED]),
      utf8Validation: dice.oneOf([FeatureSet_Utf8Validation.VERIFY, FeatureSet_Utf8Validation.NONE]),
      fieldPresence: dice.oneOf([FeatureSet_FieldPresence.EXPLICIT, FeatureSet_FieldPresence.IMPLICIT]),
      messageEncoding: dice.oneOf([DELIMITED, LENGTH_PREFIXED]),
      repeatedFieldEncoding: dice.oneOf([PACKED, EXPANDED]),
    };
    file.options = create(FileDescriptorProtoSchema, { options: { features } }).options;
  }
  const set = create(FileDescriptorSetSchema, { file: [...imports.map(({ proto }) => proto), file] });
  return [...createFileRegistry(set)].flatMap((type) =>
    type.kind === "message" && type.file.proto.name === file.name ? [type] : [],
  );
}

function randomMessage(name: string, syntax: Syntax, dice: Dice): MessageType {
  const message: Required<Pick<MessageType, "field" | "nestedType" | "oneofDecl">> & MessageType = {
    name,
    field: [],
    nestedType: [],
    oneofDecl: [{ name: "choice" }],
  };
  const count = 1 + dice.roll(maxFields);
  // Tags with one, two and three bytes.
  const numbers = [1, 2, 3, 4, 5, 6, 14, 15, 16, 17, 2047, 2048, 70_000];
  for (let n = 0; n < count; n += 1) {
    const field = randomField(`f${n}`, numbers[n] ?? n, syntax, dice);
    if (dice.roll(6) === 0) message.nestedType.push(toMap(name, field, syntax, dice));
    message.field.push(field);
  }
  // A oneof's members must be adjacent.
  for (const number of [2_000_000, 2_000_001]) {
    const member = randomValue(`c${number}`, number, syntax, dice);
    message.field.push({ ...member, label: Label.OPTIONAL, oneofIndex: 0 });
  }
  message.field.forEach((field, n) => {
    if (field.proto3Optional !== true) return;
    field.oneofIndex = message.oneofDecl.length;
    message.oneofDecl.push({ name: `_f${n}` });
  });
  return message;
}

function randomField(name: string, number: number, syntax: Syntax, dice: Dice): Field {
  const field = randomValue(name, number, syntax, dice);
  const isMessage = field.typeName !== undefined && field.type !== Type.ENUM;
  switch (dice.roll(4)) {
    case 0:
      field.label = Label.REPEATED;
      if (!isMessage && field.type !== Type.STRING && field.type !== Type.BYTES && syntax !== "editions")
        field.options = { ...field.options, packed: dice.roll(2) === 0 };
      break;
    case 1:
      if (syntax === "proto2") field.label = Label.REQUIRED;
      if (syntax === "proto3" && !isMessage) field.proto3Optional = true;
      break;
    case 2:
      if (syntax === "proto2" && field.type === Type.INT32) field.defaultValue = "7";
      break;
  }
  return field;
}

function randomValue(name: string, number: number, syntax: Syntax, dice: Dice): Field {
  const field: Field = { name, number, label: Label.OPTIONAL, jsonName: name };
  switch (dice.roll(5)) {
    case 0:
      field.type = syntax === "proto2" && dice.roll(3) === 0 ? Type.GROUP : Type.MESSAGE;
      return { ...field, typeName: `.random.M${dice.roll(messagesPerFile)}` };
    case 1:
      return { ...field, type: Type.MESSAGE, typeName: `.google.protobuf.${dice.oneOf(wellKnown)}` };
    case 2:
      return { ...field, type: Type.ENUM, typeName: ".random.Kind" };
    default: {
      const type = dice.oneOf(scalars);
      if (longs.includes(type) && dice.roll(3) === 0) field.options = { jstype: FieldOptions_JSType.JS_STRING };
      return { ...field, type };
    }
  }
}

/** Turns a field into a map, and returns the map entries' type. */
function toMap(parent: string, field: Field, syntax: Syntax, dice: Dice): MessageType {
  const { type, typeName } = randomValue("value", 2, syntax, dice);
  const name = `${field.name ?? ""}Entry`.replace(/^f/, "F");
  const value: Field = { name: "value", number: 2, label: Label.OPTIONAL };
  if (type !== undefined) value.type = type === Type.GROUP ? Type.MESSAGE : type;
  field.type = Type.MESSAGE;
  field.typeName = `.random.${parent}.${name}`;
  field.label = Label.REPEATED;
  delete field.proto3Optional;
  delete field.defaultValue;
  delete field.options;
  return {
    name,
    field: [
      { name: "key", number: 1, label: Label.OPTIONAL, type: dice.oneOf(mapKeys) },
      typeName === undefined ? value : { ...value, typeName },
    ],
    options: { mapEntry: true },
  };
}
