import type { DescService } from "@bufbuild/protobuf";
import { FieldDescriptorProto_Type as Type } from "@bufbuild/protobuf/wkt";
import { describe, expect, test } from "vitest";
import { createGateway, parseHttpRules } from "../../../../src/index.ts";
import { createOpenApi, type OpenApiDocument } from "../../../../src/openapi/index.ts";
// oxfmt-ignore
import { maxComponentFields, fieldsOmittedNote, maxDocumentFields, maxExampleFields, maxOperationFields
} from "../../../../src/openapi/field-budget.ts";
import { type FieldInit, type FileInit, serviceIn, stringField } from "../../../../../testing/src/gateway/file-init.ts";

// What a document omits from definitions that would be too large, and where it notes that.

const info = { title: "t", version: "1" };

function message(name: string, number: number, typeName: string): FieldInit {
  return { ...stringField(name, number), type: Type.MESSAGE, typeName: `.nested.${typeName}` };
}

const texts = (length: number, from = 1): FieldInit[] =>
  Array.from({ length }, (_, at) => stringField(`t${at}`, at + from));

function serviceOf(file: FileInit): DescService {
  const whole = { name: "nested.proto", package: "nested", syntax: "proto3", ...file, dependency: [] };
  return serviceIn(whole, "nested.Nested");
}

/** Describes a service whose only RPC takes a message `L0`, with a rule. */
function describeBy(rule: object, file: Partial<FileInit>, comments?: ReadonlyMap<string, string>): OpenApiDocument {
  const method = [{ name: "Send", inputType: ".nested.L0", outputType: ".nested.L0" }];
  const service = serviceOf({ service: [{ name: "Nested", method }], ...file });
  const rules = parseHttpRules(JSON.stringify({ rules: [{ selector: "nested.Nested.Send", ...rule }] }));
  return createOpenApi([service], { info, rest: { rules }, ...(comments && { comments }) });
}

const queryOf = ({ paths }: OpenApiDocument, path = "/nested"): readonly string[] =>
  (paths[path]?.get?.parameters ?? []).map(({ name }) => name);

describe("the limit of query parameters", () => {
  // A message with more fields than may be listed, before a string.
  const messageType = [
    { name: "L0", field: [message("deep", 1, "L1"), stringField("shallow", 2)] },
    { name: "L1", field: [message("deeper", 1, "L2"), ...texts(10, 2)] },
    { name: "L2", field: texts(maxOperationFields) },
  ];

  test("omits the most deeply nested fields of a larger message", () => {
    const document = describeBy({ get: "/nested" }, { messageType });
    const names = queryOf(document);
    // The two messages and the first field beyond the limit count as well.
    expect([names.length, names[0], names.at(-1)]).toEqual([maxOperationFields - 2, "deep.deeper.t0", "shallow"]);
    expect(document.paths["/nested"]?.get?.description.split("\n\n").at(-1)).toBe(fieldsOmittedNote);
  });

  test("includes all fields of a message at the limit", () => {
    const document = describeBy(
      { get: "/nested" },
      { messageType: [{ name: "L0", field: texts(maxOperationFields) }] },
    );
    expect(queryOf(document).length).toBe(maxOperationFields);
    expect(JSON.stringify(document)).not.toContain(fieldsOmittedNote);
  });

  test("counts a field with a long comment as several fields", () => {
    const comment = "c".repeat(9_900);
    const comments = new Map(texts(100).map(({ name }) => [`nested.L0.${name}`, comment]));
    const document = describeBy({ get: "/nested" }, { messageType: [{ name: "L0", field: texts(100) }] }, comments);
    expect(queryOf(document).length).toBe(maxOperationFields / 100);
  });

  test("does not count fields that are nested over 100 levels deep", () => {
    const levels = Array.from({ length: 101 }, (_, level) => ({
      name: `L${level}`,
      field: level < 100 ? [message("n", 1, `L${level + 1}`)] : texts(maxOperationFields),
    }));
    const document = describeBy({ get: "/nested" }, { messageType: levels });
    expect(document.paths["/nested"]?.get?.description).not.toContain(fieldsOmittedNote);
  });

  test("excludes a field that is nested over 100 levels deep", async () => {
    const withTexts = Array.from({ length: 110 }, (_, level) => ({
      name: `L${level}`,
      field: [...(level < 109 ? [message("next", 1, `L${level + 1}`)] : []), stringField("text", 2)],
    }));
    const [deepest = ""] = queryOf(describeBy({ get: "/nested" }, { messageType: withTexts })).toSorted(
      (a, b) => b.length - a.length,
    );
    expect(deepest.split(".").length).toBe(100);
    const service = serviceOf({
      messageType: withTexts,
      service: [{ name: "Nested", method: [{ name: "Send", inputType: ".nested.L0", outputType: ".nested.L0" }] }],
    });
    const rules = parseHttpRules('{"rules":[{"selector":"nested.Nested.Send","get":"/nested"}]}');
    const gateway = createGateway({ routes: (router) => void router.service(service, {}), rest: { rules } });
    // A response that the handler is missing shows that the request was valid.
    const statusOf = async (name: string): Promise<number> =>
      (await gateway.fetch(new Request(`http://gateway/nested?${name}=x`))).status;
    expect([await statusOf(deepest), await statusOf(`next.${deepest}`)]).toEqual([501, 400]);
    await gateway.close();
  });

  test("is shared by all operations of a document", () => {
    const operations = maxDocumentFields / maxOperationFields + 10;
    const additional = Array.from({ length: operations }, (_, at) => ({ get: `/nested/${at}` }));
    const file = { messageType: [{ name: "L0", field: texts(maxOperationFields) }] };
    const document = describeBy({ get: "/nested", additionalBindings: additional }, file);
    const listed = Object.keys(document.paths).reduce((sum, path) => sum + queryOf(document, path).length, 0);
    expect([listed, Object.keys(document.paths).length]).toEqual([maxDocumentFields, operations + 1]);
    expect(document.paths[`/nested/${operations - 1}`]?.get?.description).toContain(fieldsOmittedNote);
  });
});

describe("the limit of a schema", () => {
  test("for a body without path fields is the limit of an operation", () => {
    const file = { messageType: [{ name: "L0", field: texts(maxOperationFields + 2) }] };
    const document = describeBy({ post: "/nested/{t0}", body: "*" }, file);
    const { schema = {} } = document.paths["/nested/{t0}"]?.post?.requestBody?.content["application/json"] ?? {};
    expect(Object.keys(Object(schema["properties"])).length).toBe(maxOperationFields);
    expect(schema["$comment"]).toBe(fieldsOmittedNote);
  });

  test.each([
    { name: "includes all fields of a message at the limit", count: maxComponentFields, comment: undefined },
    { name: "adds a note to a message above the limit", count: maxComponentFields + 1, comment: fieldsOmittedNote },
  ])("$name", ({ count, comment }) => {
    const document = describeBy({ post: "/nested", body: "*" }, { messageType: [{ name: "L0", field: texts(count) }] });
    const schema = document.components?.schemas?.["L0"] ?? {};
    expect(Object.keys(Object(schema["properties"])).length).toBe(maxComponentFields);
    expect(schema["$comment"]).toBe(comment);
  });

  test.each([
    { name: "includes all values of an enum at the limit", count: maxComponentFields },
    { name: "omits the values of an enum above the limit", count: maxComponentFields + 1 },
  ])("$name", ({ count }) => {
    const enumType = [
      { name: "Kind", value: Array.from({ length: count }, (_, number) => ({ name: `K${number}`, number })) },
    ];
    const field = [{ ...stringField("kind", 1), type: Type.ENUM, typeName: ".nested.Kind" }];
    const document = describeBy({ post: "/nested", body: "*" }, { messageType: [{ name: "L0", field }], enumType });
    const { enum: names, $comment } = document.components?.schemas?.["Kind"] ?? {};
    expect(Array.isArray(names) ? names.length : $comment).toBe(
      count === maxComponentFields ? count : `The ${count} names of this enum are too many to list.`,
    );
  });
});

describe("an example", () => {
  /** Returns the example for a message with this many strings three levels below. */
  function exampleOf(widths: readonly number[]): unknown {
    const messageType = widths.map((width, level) => ({
      name: `L${level}`,
      field: [...texts(width), ...(level + 1 < widths.length ? [message("next", width + 1, `L${level + 1}`)] : [])],
    }));
    const { examples } = describeBy({ post: "/nested", body: "*" }, { messageType }).components?.schemas?.["L0"] ?? {};
    return Array.isArray(examples) ? examples[0] : undefined;
  }

  test.each([
    ["three nested levels if they fit into the limit", [1, 1, 1, maxExampleFields - 4], "next.next.next.t0"],
    ["two nested levels if the third does not fit", [1, 1, 1, maxExampleFields], "next.next.t0"],
    ["one nested level if the second does not fit", [1, 1, maxExampleFields, 1], "next.t0"],
    ["only the message's fields if no nested level fits", [1, maxExampleFields, 1, 1], "t0"],
    ["all of the message's fields, even above the limit", [maxExampleFields * 2], `t${maxExampleFields * 2 - 1}`],
  ])("has %s", (_name, widths, deepest) => {
    const example = exampleOf(widths);
    expect(example).toHaveProperty(deepest, "text");
    expect(example).not.toHaveProperty(deepest.replace(/[^.]+$/, "next.t0"));
  });
});

test("a comment of more than 20,000 characters is truncated with a note", () => {
  const leadingComments = "c".repeat(20_001);
  const document = describeBy(
    { post: "/nested", body: "*" },
    { messageType: [{ name: "L0" }], sourceCodeInfo: { location: [{ path: [4, 0], leadingComments }] } },
  );
  expect(document.components?.schemas?.["L0"]?.["description"]).toBe(`${"c".repeat(20_000)}… (cut off)`);
});
