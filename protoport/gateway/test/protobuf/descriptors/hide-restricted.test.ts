import { create, type DescFile, getExtension, type MessageInitShape, setExtension, toBinary } from "@bufbuild/protobuf";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
// oxfmt-ignore
import { anyPack, AnySchema, EnumOptionsSchema, EnumValueOptionsSchema, FieldDescriptorProto_Label as Label,
  FieldDescriptorProto_Type as Type, FieldDescriptorProtoSchema, type FieldOptions, FieldOptionsSchema,
  FieldMaskSchema, FileDescriptorProtoSchema, FileDescriptorSetSchema, MessageOptionsSchema,
  MethodDescriptorProtoSchema, MethodOptionsSchema, ServiceOptionsSchema } from "@bufbuild/protobuf/wkt";
import { describe, expect, test } from "vitest";
import { HiddenParts, readDescriptorSet } from "../../../src/protobuf/descriptors/index.ts";
import { visibilityLabelsOf } from "../../../src/protobuf/descriptors/hide-restricted.ts";
import { http } from "../../../src/protobuf/gen/google/api/annotations_pb.ts";
import { HttpRuleSchema } from "../../../src/protobuf/gen/google/api/http_pb.ts";
import { commentOf, commentsOf } from "../../../src/openapi/index.ts";
import { runSteps } from "../../../src/http/exchange/index.ts";
import { restrictedTo } from "../../../../testing/src/gateway/restricted.ts";
import { attempt } from "../../../../testing/src/attempt.ts";
import { descriptorSetOf } from "../../../../testing/src/gateway/descriptor-set.ts";
// oxfmt-ignore
import { Color, file_kitchensink_v1_kitchen_sink, SinkSchema
} from "../../../../testing/src/gen/kitchensink/v1/kitchen_sink_pb.ts";

// An element is hidden if its google.api.visibility rule has no allowed label.

const ofMessage = restrictedTo("INTERNAL", MessageOptionsSchema);
const ofField = restrictedTo("INTERNAL", FieldOptionsSchema);
const ofEnum = restrictedTo("INTERNAL", EnumOptionsSchema);
const ofMethod = restrictedTo(" INTERNAL ,PREVIEW", MethodOptionsSchema);

type FieldMembers = Partial<Record<"oneofIndex" | "type" | "label", number>> & {
  readonly typeName?: string;
  readonly options?: FieldOptions;
};
type FieldInit = MessageInitShape<typeof FieldDescriptorProtoSchema>;
function field(name: string, number: number, others: FieldMembers = {}): FieldInit {
  return { name, jsonName: name, number, type: Type.STRING, label: Label.OPTIONAL, ...others };
}

const message = (name: string): FieldMembers => ({ type: Type.MESSAGE, typeName: `.a.${name}` });

/** A definition with one internal element for each kind. Each element's comment is its name. */
function definition(value = restrictedTo("INTERNAL", EnumValueOptionsSchema)): Uint8Array {
  const ofMessages = { "4,1": "Order", "4,1,2,0": "secret", "4,1,2,1": "text", "4,1,2,6": "kind" };
  const others = { "5,0,2,1": "HIDDEN", "5,0,2,2": "SHOWN", "6,0,2,0": "Hidden", "6,0,2,1": "Shown" };
  const location = Object.entries({ ...ofMessages, ...others }).map(([path, leadingComments]) => {
    return { path: path.split(",").map(Number), leadingComments };
  });
  const file = create(FileDescriptorProtoSchema, {
    name: "a.proto",
    package: "a",
    syntax: "proto3",
    // oxfmt-ignore
    messageType: [
      { name: "Internal", options: ofMessage, nestedType: [{ name: "Inner" }] },
      { name: "Order", oneofDecl: [{ name: "first" }, { name: "second" }],
        field: [field("secret", 1, { options: ofField, oneofIndex: 0 }), field("text", 2),
          field("internal", 3, message("Internal")), field("inner", 4, message("Internal.Inner")),
          field("map", 5, { ...message("Order.MapEntry"), label: Label.REPEATED }),
          field("hiddenKind", 6, { type: Type.ENUM, typeName: ".a.Secret" }),
          field("kind", 7, { type: Type.ENUM, typeName: ".a.Kind", oneofIndex: 1 })],
        nestedType: [{ name: "MapEntry", options: { mapEntry: true },
            field: [field("key", 1), field("value", 2, message("Internal"))] }] },
    ],
    // oxfmt-ignore
    enumType: [
      { name: "Kind",
        value: [{ name: "NONE", number: 0 }, { name: "HIDDEN", number: 1, options: value },
          { name: "SHOWN", number: 2 }] },
      { name: "Secret", value: [{ name: "SECRET", number: 0 }], options: ofEnum },
    ],
    // oxfmt-ignore
    service: [
      { name: "Shop",
        method: [{ name: "Hidden", inputType: ".a.Order", outputType: ".a.Order", options: ofMethod },
          { name: "Shown", inputType: ".a.Order", outputType: ".a.Order" },
          { name: "Typed", inputType: ".a.Internal", outputType: ".a.Order" }] },
      { name: "InternalShop", options: restrictedTo("INTERNAL", ServiceOptionsSchema),
        method: [{ name: "Buy", inputType: ".a.Order", outputType: ".a.Order" }] },
    ],
    sourceCodeInfo: { location },
  });
  return toBinary(FileDescriptorSetSchema, create(FileDescriptorSetSchema, { file: [file] }));
}

/** Returns the names of the elements that are visible with some labels. */
function namesWith(...allow: readonly string[]): object {
  const { services, types } = readDescriptorSet(definition(), { allow });
  const { fields = [], oneofs = [] } = types.getMessage("a.Order") ?? {};
  return {
    rpcs: services.flatMap(({ methods }) => methods.map(({ parent, name }) => `${parent.name}.${name}`)),
    fields: fields.map(({ name }) => name),
    oneofs: oneofs.map((oneof) => [oneof.name, ...oneof.fields.map(({ name }) => name)].join(" ")),
    values: types.getEnum("a.Kind")?.values.map(({ name }) => name),
    types: ["Internal", "Internal.Inner", "Secret"].filter((name) => types.get(`a.${name}`) !== undefined),
  };
}

const everything = {
  rpcs: ["Shop.Hidden", "Shop.Shown", "Shop.Typed", "InternalShop.Buy"],
  fields: ["secret", "text", "internal", "inner", "map", "hiddenKind", "kind"],
  oneofs: ["first secret", "second kind"],
  values: ["NONE", "HIDDEN", "SHOWN"],
  types: ["Internal", "Internal.Inner", "Secret"],
};

const values = ["NONE", "SHOWN"];
const nothing = { rpcs: ["Shop.Shown"], fields: ["text", "kind"], oneofs: ["second kind"], values, types: [] };

describe("readDescriptorSet() with restricted elements", () => {
  test.each([
    { name: "no allowed label", allow: [], want: nothing },
    { name: "an unknown label", allow: ["internal"], want: nothing },
    { name: "the label of all restrictions", allow: ["INTERNAL"], want: everything },
    { name: "a list of labels with spaces", allow: ["OTHER, INTERNAL "], want: everything },
    { name: "one of an RPC's labels", allow: ["PREVIEW"], want: { ...nothing, rpcs: ["Shop.Hidden", "Shop.Shown"] } },
  ])("with $name, keeps only the visible elements", ({ allow, want }) => expect(namesWith(...allow)).toEqual(want));

  test("keeps all elements without the option allow", () => {
    const { services, restricted, labels } = readDescriptorSet(definition());
    const want = [["Shop", "InternalShop"], new Set(), new Set()];
    expect([services.map(({ name }) => name), restricted, labels]).toEqual(want);
  });

  test("lists the labels and the types with hidden elements", () => {
    const { restricted, labels } = readDescriptorSet(definition(), { allow: [] });
    expect(restricted).toEqual(new Set(["a.Internal", "a.Internal.Inner", "a.Order", "a.Kind"]));
    expect(labels).toEqual(new Set(["INTERNAL", "PREVIEW"]));
    expect(readDescriptorSet(definition(), { allow: ["INTERNAL"] }).restricted).toEqual(new Set());
  });

  test("lists the hidden services and RPCs", () => {
    expect(readDescriptorSet(definition(), { allow: [] }).hiddenRpcs).toEqual(
      new Set(["a.InternalShop", "a.InternalShop.Buy", "a.Shop.Hidden", "a.Shop.Typed"]),
    );
    expect(readDescriptorSet(definition(), { allow: ["INTERNAL"] }).hiddenRpcs).toEqual(new Set());
    expect(readDescriptorSet(definition()).hiddenRpcs).toEqual(new Set());
  });

  test("keeps the comments of the visible elements", () => {
    const { services, types } = readDescriptorSet(definition(), { allow: [] });
    const comments = runSteps(commentsOf(services));
    const [shown] = services.flatMap(({ methods }) => methods);
    const order = types.getMessage("a.Order");
    const shownValue = types.getEnum("a.Kind")?.value[2];
    const want = ["Shown", "Order", "text", "kind"];
    expect([shown, order, ...(order?.fields ?? [])].map((desc) => desc && commentOf(comments, desc))).toEqual(want);
    expect(shownValue?.name).toBe("SHOWN");
    expect([...comments.values()].toSorted()).toEqual(["Order", "SHOWN", "Shown", "kind", "text"]);
  });
});

test("labels come from a visibility rule's restriction, not from its selector", () => {
  const rule = new BinaryWriter();
  rule.tag(1, WireType.LengthDelimited).string("a.Order");
  rule.tag(2, WireType.LengthDelimited).string("INTERNAL, PREVIEW");
  const data = new BinaryWriter().bytes(rule.finish()).finish();
  const options = create(MethodOptionsSchema);
  options.$unknown = [{ no: 72295727, wireType: WireType.LengthDelimited, data }];
  expect(visibilityLabelsOf(create(MethodDescriptorProtoSchema, { options }))).toEqual(["INTERNAL", "PREVIEW"]);
});

test("the first value of an enum cannot be hidden", () => {
  const file: DescFile["proto"] | undefined = readDescriptorSet(definition()).services[0]?.file.proto;
  if (file === undefined) throw new TypeError("the set has no service");
  const [kind] = file.enumType;
  const [none] = kind?.value ?? [];
  if (none !== undefined) none.options = restrictedTo("INTERNAL", EnumValueOptionsSchema);
  const changed = toBinary(FileDescriptorSetSchema, create(FileDescriptorSetSchema, { file: [file] }));
  expect(() => readDescriptorSet(changed, { allow: [] })).toThrow("the first value of a.Kind cannot be hidden");
});

/** Encodes `buf.validate.MessageRules` with an expression, and oneof rules that may be required. */
function messageRules(oneofs: readonly { readonly fields: readonly string[]; readonly required?: boolean }[]) {
  const rules = new BinaryWriter().tag(5, WireType.LengthDelimited).string("true");
  for (const { fields, required } of oneofs) {
    const rule = new BinaryWriter();
    for (const name of fields) rule.tag(1, WireType.LengthDelimited).string(name);
    if (required !== undefined) rule.tag(2, WireType.Varint).bool(required);
    rules.tag(4, WireType.LengthDelimited).bytes(rule.finish());
  }
  return { no: 1159, wireType: WireType.LengthDelimited, data: new BinaryWriter().bytes(rules.finish()).finish() };
}

test("hidden fields are removed from oneof rules in buf.validate", () => {
  const others = { no: 50_000, wireType: WireType.Varint, data: new BinaryWriter().uint32(7).finish() };
  const [both, text, secret] = [["secret", "text"], ["text"], ["secret"]];
  const complete = messageRules([{ fields: both, required: true }, { fields: text }, { fields: secret }]);
  const optionsOf = (typeName: string, allow: readonly string[]): unknown => {
    const options = create(MessageOptionsSchema);
    options.$unknown = [others, complete];
    const messageType = ["Order", "Open"].map((name) => ({
      name,
      field: [field("secret", 1, name === "Open" ? {} : { options: ofField }), field("text", 2)],
      options,
    }));
    const file = [{ name: "a.proto", package: "a", syntax: "proto3", messageType }];
    const set = toBinary(FileDescriptorSetSchema, create(FileDescriptorSetSchema, { file }));
    return readDescriptorSet(set, { allow }).types.getMessage(`a.${typeName}`)?.proto.options?.$unknown;
  };
  const want = [others, messageRules([{ fields: ["text"], required: true }, { fields: ["text"] }])];
  expect([optionsOf("Order", []), optionsOf("Order", ["INTERNAL"])]).toEqual([want, [others, complete]]);
  expect(optionsOf("Open", [])).toEqual([others, complete]);
});

describe("imports in a file with hidden elements", () => {
  const imports = ["secret", "shown", "options", "through", "unused"];
  const request = { name: "Request", field: [field("id", 1)] };
  const method = (type: string, hidden: boolean) => {
    const name = type.slice(1).replaceAll(".", "_");
    return { name, inputType: type, outputType: type, ...(hidden && { options: ofMethod }) };
  };
  const extension = field("option", 50_001, { type: Type.STRING });

  /** Returns the imports of the file of a service, and their comments. */
  function importsFor(methods: readonly ReturnType<typeof method>[]): object {
    // oxfmt-ignore
    const file = [
      { name: "secret.proto", package: "secret", messageType: [request] },
      { name: "shown.proto", package: "shown", messageType: [request] },
      { name: "options.proto", package: "options",
        messageType: [{ ...request, extension: [{ ...extension, extendee: ".google.protobuf.MethodOptions" }] }],
        dependency: ["google/protobuf/descriptor.proto"] },
      { name: "through.proto", package: "through", dependency: ["secret.proto"], publicDependency: [0] },
      { name: "unused.proto", package: "unused", messageType: [request] },
      { name: "a.proto", package: "a",
        dependency: imports.map((name) => `${name}.proto`), publicDependency: [0],
        service: [{ name: "Shop", method: [...methods] }],
        sourceCodeInfo: { location: imports.map((leadingComments, at) => ({ path: [3, at], leadingComments })) } },
    ].map((each) => ({ ...each, syntax: "proto3" }));
    const set = toBinary(FileDescriptorSetSchema, create(FileDescriptorSetSchema, { file }));
    const { proto } = readDescriptorSet(set, { allow: [] }).services[0]?.file ?? {};
    const { dependency = [], sourceCodeInfo: { location = [] } = {} } = proto ?? {};
    const comments = location.map(({ path, leadingComments }) => `${path.join(".")} ${leadingComments}`);
    return { names: dependency.map((name) => name.replace(".proto", "")), comments };
  }

  const [secret, shown] = [method(".secret.Request", true), method(".shown.Request", false)];
  const visible = { ...method(".secret.Request", false), name: "Other" };

  test.each([
    ["are dropped if only hidden elements need them", [secret, shown], ["shown", "options", "unused"]],
    ["are kept if a visible element needs them too", [secret, visible, shown], imports],
    ["are kept if they have extensions", [method(".options.Request", true), shown], imports],
  ])("%s", (_name, methods, want) => {
    expect(importsFor(methods)).toMatchObject({ names: want, comments: want.map((name, at) => `3.${at} ${name}`) });
  });
});

describe("an HTTP rule", () => {
  const entry = { name: "SecretsEntry", field: [field("key", 1), field("value", 2, message("Secret"))] };
  // oxfmt-ignore
  const types = { name: "types.proto",
    package: "a",
    messageType: [{ name: "Secret", options: ofMessage },
      { name: "Inner", field: [field("secret", 1, { options: ofField }), field("text", 2)] },
      { name: "Ask", field: [field("id", 1), field("inner", 2, message("Inner")),
          field("secrets", 3, { ...message("Ask.SecretsEntry"), label: Label.REPEATED })],
        nestedType: [{ ...entry, options: create(MessageOptionsSchema, { mapEntry: true }) }] }],
  };

  const innerText = { body: "inner", responseBody: "inner.text" };
  const unknownFields = "/{inner.other}/{id.secret}";

  test.each<[name: string, rule: MessageInitShape<typeof HttpRuleSchema>, want: readonly string[]]>([
    ["a hidden field of a field", { pattern: { case: "get", value: "/{inner.text}/{inner.secret=a/*}" } }, ["/kept"]],
    ["a map of hidden messages", { pattern: { case: "put", value: "/a" }, body: "secrets" }, ["/kept"]],
    ["visible fields", { pattern: { case: "put", value: "/{id}" }, ...innerText }, ["/{id}", "/kept"]],
    ["unknown fields", { pattern: { case: "get", value: unknownFields } }, [unknownFields, "/kept"]],
  ])("keeps a binding with %s unless the field is hidden", (_name, rule, want) => {
    const additionalBindings = [create(HttpRuleSchema, { pattern: { case: "get", value: "/kept" } })];
    const options = create(MethodOptionsSchema, { deprecated: true });
    setExtension(options, http, create(HttpRuleSchema, { ...rule, additionalBindings }));
    const method = [{ name: "Get", inputType: ".a.Ask", outputType: ".a.Ask", options }];
    const service = { name: "a.proto", package: "a", dependency: ["types.proto"], service: [{ name: "S", method }] };
    const set = create(FileDescriptorSetSchema, { file: [service, types] });
    const [visible] = readDescriptorSet(toBinary(FileDescriptorSetSchema, set), { allow: [] }).services;
    const found = visible?.methods[0]?.proto.options ?? create(MethodOptionsSchema);
    const { additionalBindings: others, ...first } = getExtension(found, http);
    expect([[first, ...others].map(({ pattern }) => pattern.value), found.deprecated]).toEqual([want, true]);
  });
});

const proto = structuredClone(file_kitchensink_v1_kitchen_sink.proto);
for (const value of proto.enumType.flatMap((desc) => desc.value))
  if (value.name === "COLOR_RED") value.options = restrictedTo("INTERNAL", EnumValueOptionsSchema);
const hiddenSink = readDescriptorSet(descriptorSetOf({ ...file_kitchensink_v1_kitchen_sink, proto }), { allow: [] });

test.each<[name: string, sent: MessageInitShape<typeof SinkSchema>, want: MessageInitShape<typeof SinkSchema>]>([
  ["a field", { maybeEnum: Color.RED }, {}],
  ["a oneof", { choice: { case: "choiceEnum", value: Color.RED } }, {}],
  ["a list", { colors: [Color.RED, Color.UNSPECIFIED] }, { colors: [Color.UNSPECIFIED] }],
  ["a map", { palette: { a: Color.RED, b: Color.UNSPECIFIED } }, { palette: { b: Color.UNSPECIFIED } }],
])("HiddenParts removes a hidden enum value from %s", (_name, sent, want) => {
  const desc = hiddenSink.types.getMessage(SinkSchema.typeName) ?? expect.unreachable();
  const sink = create(SinkSchema, sent);
  HiddenParts.of([hiddenSink], undefined)?.removeFrom(desc, sink);
  expect(sink).toEqual(create(SinkSchema, want));
});

describe("HiddenParts", () => {
  const list = { label: Label.REPEATED };
  const mask = { type: Type.MESSAGE, typeName: ".google.protobuf.FieldMask" };
  const ofValue = restrictedTo("INTERNAL", EnumValueOptionsSchema);
  const file = create(FileDescriptorProtoSchema, {
    name: "masks.proto",
    package: "a",
    syntax: "proto3",
    dependency: ["google/protobuf/any.proto", "google/protobuf/field_mask.proto"],
    // oxfmt-ignore
    messageType: [
      { name: "Part", field: [field("text", 1), field("secret", 2, { options: ofField })] },
      { name: "Open",
        field: [field("any", 1, { ...mask, typeName: ".google.protobuf.Any" }),
          field("kind", 2, { type: Type.ENUM, typeName: ".a.Kind" })] },
      { name: "Thing",
        field: [field("part", 1, message("Part")), field("parts", 2, { ...message("Part"), ...list }),
          field("named", 3, { ...message("Thing.NamedEntry"), ...list }), field("open", 4, message("Open"))],
        nestedType: [{ name: "NamedEntry", options: { mapEntry: true },
          field: [field("key", 1), field("value", 2, message("Part"))] }] },
      { name: "Update", field: [field("thing", 1, message("Thing")), field("update_mask", 2, mask)] },
      { name: "Read", field: [field("thing", 1, message("Thing")), field("read_mask", 2, mask)] },
    ],
    // oxfmt-ignore
    enumType: [{ name: "Kind",
      value: [{ name: "NONE", number: 0 }, { name: "HIDDEN", number: 1, options: ofValue }] }],
  });
  const set = toBinary(FileDescriptorSetSchema, create(FileDescriptorSetSchema, { file: [file] }));
  const restricted = readDescriptorSet(set, { allow: [] });
  const hidden = HiddenParts.of([restricted], undefined) ?? expect.unreachable();

  /** Returns the paths that stay in a message's mask, or that a request may have. */
  function acceptedIn(name: string, isRequest: boolean, paths: readonly string[]): readonly string[] {
    const desc = restricted.types.getMessage(`a.${name}`) ?? expect.unreachable();
    const isAccepted = (path: string): boolean => {
      const sent = create(FieldMaskSchema, { paths: [path] });
      const value = create(desc, { [desc.fields[1]?.localName ?? ""]: sent });
      if (isRequest) hidden.removeFromRequest(desc, value);
      else hidden.removeFrom(desc, value);
      return sent.paths.length > 0;
    };
    return paths.filter((path) => attempt(() => isAccepted(path)));
  }

  const harmless = ["part.text", "parts.*.text", "named.a.text", "open", "open.*", "open.kind", "open.any"];
  const visible = ["*", "part", "parts", "parts.*", "named", "named.a", ...harmless];
  test.each([
    { name: "refuses messages with hidden fields in update masks", of: "Update", isRequest: true, want: harmless },
    { name: "accepts messages with hidden fields in read masks", of: "Read", isRequest: true, want: visible },
    { name: "keeps messages with hidden fields in masks of responses", of: "Update", isRequest: false, want: visible },
  ])("$name", ({ of, isRequest, want }) => {
    expect(acceptedIn(of, isRequest, [...visible, "part.secret", "unknown"])).toEqual(want);
  });

  test.each(["*", "part", "unknown"])(
    "refuses the update mask %s in nested Anys of a request, not of a response",
    (path) => {
      const desc = restricted.types.getMessage("a.Update") ?? expect.unreachable();
      const update = create(desc, { updateMask: create(FieldMaskSchema, { paths: ["part.text", path] }) });
      const any = anyPack(AnySchema, anyPack(desc, update));
      expect(() => hidden.removeFromRequest(AnySchema, any)).toThrow(`update_mask: unknown path "${path}"`);
      expect(() => hidden.removeFrom(AnySchema, any)).not.toThrow();
    },
  );

  test("empties an Any whose content is not valid", () => {
    const any = create(AnySchema, { typeUrl: "x/a.Update", value: Uint8Array.of(255) });
    hidden.removeFromRequest(AnySchema, any);
    expect(any).toMatchObject({ typeUrl: "x/a.Update", value: new Uint8Array() });
  });
});
