// oxfmt-ignore
import { create, createFileRegistry, createRegistry, isMessage, type Message, type MessageInitShape
} from "@bufbuild/protobuf";
// oxfmt-ignore
import { FieldDescriptorProto_Label as Label, FieldDescriptorProto_Type as Type, FileDescriptorProtoSchema
} from "@bufbuild/protobuf/wkt";
import { describe, expect, test } from "vitest";
// oxfmt-ignore
import { compileRestRoutes, type RestRouteOptions, type RestServiceOptions
} from "../../../../src/protocols/rest/rules/index.ts";
import { GreenhouseService } from "../../../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { exchangeHttp2, startKitchenSink } from "@protoport/testing";
// oxfmt-ignore
import { KitchenSink, NestedSchema, SinkSchema
} from "../../../../../testing/src/gen/kitchensink/v1/kitchen_sink_pb.ts";
// oxfmt-ignore
import { file_kitchensink_v1_legacy, LegacySchema, LegacySink
} from "../../../../../testing/src/gen/kitchensink/v1/legacy_pb.ts";
import { Shelves, UpdateShelfRequestSchema } from "../../../../../testing/src/gen/kitchensink/v1/shelves_pb.ts";

const registry = createRegistry(NestedSchema);

function decode(options: RestRouteOptions, request: string, body: string): Message {
  const [httpMethod = "", target = ""] = request.split(" ");
  const [path = "", query = ""] = target.split("?");
  const methods = [KitchenSink, Shelves, LegacySink].flatMap((service) => service.methods);
  const match = compileRestRoutes(methods, options).match(httpMethod, path);
  if (match.kind !== "binding") throw new Error(match.kind);
  const bytes = new TextEncoder().encode(body);
  return match.binding.decode({ captures: match.captures, query, contentType: null, body: bytes });
}

/** A rule whose path sets a field, and whose body is the complete message. */
const putAt = (field: string) => ({ pattern: { case: "put", value: `/v1/floats/{${field}}` }, body: "*" }) as const;

describe("sameValueAsPath", () => {
  const options: RestRouteOptions = { service: () => ({ sameValueAsPath: true }) };

  test.each<[body: string, request: string, want: MessageInitShape<typeof UpdateShelfRequestSchema>]>([
    ['{"name":"shelves/1","theme":"a"}', "PATCH /v1/shelves/1", { shelf: { name: "shelves/1", theme: "a" } }],
    ['{"name":"shelves/1"}', "PUT /v1/shelves/%31", { shelf: { name: "shelves/1" } }],
    ['{"name":null}', "PATCH /v1/shelves/1", { shelf: { name: "shelves/1" } }],
    [
      '{"shelf":{"name":"shelves/1","theme":"a"},"updateMask":"theme"}',
      "POST /v1/shelves/1:update",
      { shelf: { name: "shelves/1", theme: "a" }, updateMask: { paths: ["theme"] } },
    ],
  ])("accepts %s (%s)", (body, request, want) => {
    expect(decode(options, request, body)).toEqual(create(UpdateShelfRequestSchema, want));
  });

  test.each<[body: string, request: string, want: MessageInitShape<typeof SinkSchema>]>([
    ['{"f_int64":7.0,"fBool":true}', "PUT /v1/sinks/7", { fInt64: 7n, fBool: true }],
    [
      '{"choiceText":"a","fBool":true}',
      "PUT /v1/sinks/7",
      { fInt64: 7n, fBool: true, choice: { case: "choiceText", value: "a" } },
    ],
    ['{"nested":{"text":"a","number":7}}', "PUT /v1/nested/a/sinks", { nested: { text: "a", number: 7n } }],
    ['{"choiceText":"a"}', "PUT /v1/choices/a", { choice: { case: "choiceText", value: "a" } }],
    ['{"inner":{"inner":{"text":"a"}}}', "PATCH /v1/inner/a", { nested: { inner: { inner: { text: "a" } } } }],
  ])("accepts %s (%s)", (body, request, want) => {
    expect(decode(options, request, body)).toEqual(create(SinkSchema, want));
  });

  test.each([
    ['{"name":"shelves/2"}', "PATCH /v1/shelves/1", "shelf.name: must be the value in the path"],
    ['{"name":""}', "PATCH /v1/shelves/1", "shelf.name: must be the value in the path"],
    ['{"name":7}', "PATCH /v1/shelves/1", "shelf.name: must be a string"],
    ['{"fInt64":8}', "PUT /v1/sinks/7", "f_int64: must be the value in the path"],
    ['{"fInt64":7,"f_int64":7}', "PUT /v1/sinks/7", "f_int64: is set more than once"],
    ['{"inner":{"inner":{"text":"b"}}}', "PATCH /v1/inner/a", "nested.inner.inner.text: must be the value in the path"],
    ['{"choiceText":"b"}', "PUT /v1/choices/a", "choice_text: must be the value in the path"],
    ["{}", "PATCH /v1/shelves/1?shelf.name=shelves/1", "is already set by the path or the body"],
  ])("refuses %s at %s (%s)", (body, request, want) => expect(() => decode(options, request, body)).toThrow(want));

  test.each([
    { field: "f_double", path: "NaN", body: '{"fDouble":"NaN"}' },
    { field: "f_float", path: "NaN", body: '{"fFloat":"NaN"}' },
    { field: "w_double", path: "NaN", body: '{"wDouble":"NaN"}' },
    { field: "f_double", path: "Infinity", body: '{"fDouble":"Infinity"}' },
  ])("accepts $body ($path in the path)", ({ field, path, body }) => {
    const rules = [{ selector: "kitchensink.v1.KitchenSink.Types", ...putAt(field) }];
    const decodeAt = (value: string, json: string): Message =>
      decode({ ...options, rules }, `PUT /v1/floats/${value}`, json);
    expect(decodeAt(path, body)).toEqual(decodeAt(path, "{}"));
    expect(() => decodeAt("1.5", body)).toThrow("must be the value in the path");
    expect(() => decodeAt(path, body.replace(`"${path}"`, "1.5"))).toThrow("must be the value in the path");
  });

  test("refuses a value other than the path's even in a lenient service", () => {
    const lax: RestRouteOptions = { service: () => ({ sameValueAsPath: true, lenient: true }) };
    expect(() => decode(lax, "PATCH /v1/shelves/1", '{"name":"shelves/2"}')).toThrow("must be the value in the path");
    expect(decode(lax, "PATCH /v1/shelves/1", '{"name":"shelves/1","x":1}')).toEqual(
      create(UpdateShelfRequestSchema, { shelf: { name: "shelves/1" } }),
    );
  });

  test("does not affect other services", () => {
    const ownShelves: RestRouteOptions = { service: (service) => ({ sameValueAsPath: service === Shelves }) };
    expect(() => decode(ownShelves, "PUT /v1/sinks/7", '{"fInt64":7}')).toThrow("f_int64: is already set by the path");
  });

  test("does not apply to the messages of a client stream", () => {
    const pattern = { case: "post", value: "/v1/sensors/{sensor}/readings" } as const;
    const rules = [{ selector: "greenhouse.v1.GreenhouseService.RecordReadings", pattern, body: "*" }];
    const routes = compileRestRoutes(GreenhouseService.methods, { ...options, rules });
    const match = routes.match("POST", "/v1/sensors/palm/readings");
    if (match.kind !== "binding") throw new Error(match.kind);
    const { binding, captures } = match;
    const stream = binding.openStream({ captures, query: "", contentType: "application/x-ndjson" });
    const readings = [1, 2].map(() => Buffer.from('{"sensor":"palm"}'));
    for (const reading of readings) expect(() => stream.read(reading)).toThrow("sensor: is already set by the path");
  });

  test("accepts the path's value in the body over HTTP", async () => {
    await using gateway = await startKitchenSink({
      rest: { service: () => ({ sameValueAsPath: true, updateMaskFromBody: true }) },
    });
    const response = await exchangeHttp2(gateway.address, {
      httpMethod: "PATCH",
      path: "/v1/shelves/1",
      header: [["content-type", "application/json"]],
      body: Buffer.from('{"name":"shelves/1","theme":"a","widthMm":"1"}'),
    });
    const want = { shelf: { name: "shelves/1", theme: "a", widthMm: "1" }, updateMask: "theme,widthMm" };
    expect(JSON.parse(response.body.toString())).toEqual(want);
  });
});

function maskOf(request: string, body: string, more: RestServiceOptions = {}): readonly string[] | undefined {
  const message = decode({ service: () => ({ updateMaskFromBody: true, ...more }) }, request, body);
  return isMessage(message, UpdateShelfRequestSchema) ? message.updateMask?.paths : undefined;
}

describe("updateMaskFromBody", () => {
  test.each<[why: string, body: string, want: readonly string[] | undefined, request?: string]>(
    // oxfmt-ignore
    [
      ["the sorted names of the fields in the body", '{"widthMm":"0","theme":""}', ["theme", "width_mm"]],
      ["the paths of nested fields", '{"place":{"room":"a","behind":{"floor":1}},"theme":"b"}',
        ["place.behind.floor", "place.room", "theme"]],
      ["the path of an empty nested message", '{"place":{"behind":{}}}', ["place.behind"]],
      ["the paths of null fields", '{"theme":null,"place":{"floor":null}}', ["place.floor", "theme"]],
      ["the name of a list, a map or a well-known type, not its members",
        '{"formerPlaces":[{"room":"a"}],"labels":{"a":"b"},"builtAt":"2024-01-01T00:00:00Z","notes":{"a":{"b":1}}}',
        ["built_at", "former_places", "labels", "notes"]],
      ["proto names even if the body has JSON names", '{"addressLine1":"a","camelCase":"b","field_1x":"c"}',
        ["address_line_1", "camelCase", "field_1x"]],
      ["nothing for an empty object", "{}", undefined],
      ["nothing for null", "null", undefined],
      ["nothing without a body", "", undefined],
      ["the paths in the query", '{"widthMm":1}', ["theme", "labels"], "PATCH /v1/shelves/1?update_mask=theme,labels"],
      ["the fields in the body if the query has no paths", '{"widthMm":1}', ["width_mm"],
        "PATCH /v1/shelves/1?update_mask="],
      ["nothing for a PUT request", '{"theme":"a"}', undefined, "PUT /v1/shelves/1"],
      ["nothing if the rule's body is *", '{"shelf":{"theme":"a"}}', undefined, "POST /v1/shelves/1:update"],
    ],
  )("sets the mask to %s", (_, body, want, request = "PATCH /v1/shelves/1") => {
    expect(maskOf(request, body)).toEqual(want);
  });

  test("omits fields that the path sets", () => {
    const body = '{"name":"shelves/1","theme":"a"}';
    expect(maskOf("PATCH /v1/shelves/1", body, { sameValueAsPath: true })).toEqual(["theme"]);
    expect(maskOf("PATCH /v1/shelves/1", '{"name":"shelves/1"}', { sameValueAsPath: true })).toBeUndefined();
    expect(maskOf("PATCH /v1/shelves/1", body, { lenient: true })).toEqual(["theme"]);
  });

  describe("in a lenient service", () => {
    const request = "PATCH /v1/children/a";
    const lax: RestRouteOptions = {
      service: () => ({ updateMaskFromBody: true, lenient: true }),
      json: { registry },
    };
    // oxfmt-ignore
    test.each<[name: string, want: readonly string[], body: string]>([
      ["omits unknown fields and enum names", ["f_bool"],
        '{"fBool":true,"new":1,"nested":{"new":1},"fEnum":"NEW","colors":["NEW"],"palette":{"a":"NEW"}}'],
      ["names a list or map that keeps some values", ["colors", "palette"],
        '{"colors":["NEW","COLOR_RED"],"palette":{"a":"NEW","b":"COLOR_RED"}}'],
      ["names a list or map of messages with unknown fields", ["child.nesteds", "nested_by_id"],
        '{"child":{"nesteds":[{"new":1}]},"nestedById":{"1":{"new":1}}}'],
      ["names an Any with an unknown field", ["any"], '{"any":{"@type":"x/kitchensink.v1.Nested","new":1}}'],
    ])("%s", (_name, want, body) => {
      const message = decode(lax, request, body);
      expect(isMessage(message, SinkSchema) && message.mask?.paths).toEqual(want);
    });

    test.each([
      ["names an extension list that keeps some values", ["[x.shades]", "name"], '["NEW","SHADE_DARK"]'],
      ["omits an extension list that keeps no values", ["name"], '["NEW"]'],
    ])("%s", (_name, want, list) => {
      const { typeName } = LegacySchema;
      const shades = { name: "shades", number: 150, label: Label.REPEATED, type: Type.ENUM, extendee: `.${typeName}` };
      const dependency = ["kitchensink/v1/legacy.proto"];
      const extension = [{ ...shades, typeName: ".kitchensink.v1.Shade" }];
      const file = create(FileDescriptorProtoSchema, { name: "x.proto", package: "x", dependency, extension });
      const json = { registry: createFileRegistry(file, () => file_kitchensink_v1_legacy) };
      const pattern = { case: "patch", value: "/v1/legacies/{name}" } as const;
      const rules = [{ selector: "kitchensink.v1.LegacySink.Keep", pattern, body: "child" }];
      const message = decode({ ...lax, json, rules }, "PATCH /v1/legacies/a", `{"name":"a","[x.shades]":${list}}`);
      expect(isMessage(message, LegacySchema) && message.mask?.paths).toEqual(want);
    });

    const names = Array.from({ length: 18 }, (_, at) => `new${at}`);
    const first16 = names.slice(0, 16).map((name) => `"child.${name}"`);
    test.each([
      [`{${names.map((name) => `"${name}":1`).join()}}`, `${first16.join(", ")} and 2 more`],
      ['{"new":1}', '"child.new"'],
      ['{"nested":{"new":1},"fEnum":"NEW"}', '"child.nested.new", "child.f_enum=\\"NEW\\""'],
      ['{"colors":["NEW"]}', '"child.colors[0]=\\"NEW\\""'],
    ])("refuses %s without a mask in the query", (body, ignored) => {
      expect(() => decode(lax, request, body)).toThrow(`the body must set a field to update, got only ${ignored}`);
      expect(decode(lax, `${request}?mask=f_bool`, body)).toMatchObject({ mask: { paths: ["f_bool"] } });
    });
  });

  test.each<{ why: string; request: string; body: string; want: readonly string[] }>(
    // oxfmt-ignore
    [
      { why: "omits a message that contains only path fields", request: "PATCH /v1/inner/a",
        body: '{"inner":{"inner":{"text":"a"}},"number":1}', want: ["number"] },
      { why: "lists an Any as a single path", request: "PATCH /v1/children/a",
        body: '{"any":{"@type":"x/kitchensink.v1.Nested","text":"a"},"child":{"any":{}}}', want: ["any", "child.any"] },
    ],
  )("$why", ({ request, body, want }) => {
    const options: RestRouteOptions = {
      service: () => ({ updateMaskFromBody: true, sameValueAsPath: true }),
      json: { registry },
    };
    const message = decode(options, request, body);
    expect(isMessage(message, SinkSchema) && message.mask?.paths).toEqual(want);
  });

  test.each([
    { why: "one of several mask fields", selector: "GetShelf", body: "inner", json: '{"name":"a"}' },
    { why: "a member of a oneof", selector: "ChooseShelf", body: "shelf", json: '{"theme":"a"}' },
  ])("a mask that is $why stays empty", ({ selector, body, json }) => {
    const pattern = { case: "patch", value: "/v1/other" } as const;
    const rules = [{ selector: `kitchensink.v1.Shelves.${selector}`, pattern, body }];
    const filling: RestRouteOptions = { service: () => ({ updateMaskFromBody: true }), rules };
    expect(decode(filling, "PATCH /v1/other", json)).toEqual(decode({ rules }, "PATCH /v1/other", json));
  });

  test("is off by default", () =>
    expect(maskOf("PATCH /v1/shelves/1", '{"theme":"a"}', { updateMaskFromBody: false })).toBeUndefined());

  test("refuses a body with more fields than a mask may have", () => {
    const leaves = SinkSchema.fields.filter(({ fieldKind, oneof }) => fieldKind === "scalar" && oneof === undefined);
    const level = leaves.map(({ name }) => `"${name}":null`).join();
    const body = (levels: number): string => (levels === 0 ? "{}" : `{${level},"child":${body(levels - 1)}}`);
    const options: RestRouteOptions = { service: () => ({ updateMaskFromBody: true }) };
    expect(() => decode(options, "PATCH /v1/children/a", body(90))).toThrow(
      "the update mask has more than 1000 fields",
    );
    expect(() => decode(options, "PATCH /v1/children/a", body(10))).not.toThrow();
  });
});
