import { join } from "node:path";
import { create, setExtension } from "@bufbuild/protobuf";
// oxfmt-ignore
import { FieldDescriptorProto_Label as Label, FieldDescriptorProto_Type as Type, FieldOptionsSchema,
  type FileDescriptorProto, FileDescriptorProtoSchema, MethodOptionsSchema } from "@bufbuild/protobuf/wkt";
import { afterAll, expect, test } from "vitest";
import { startReflectingServer } from "@protoport/testing/proxy";
import { http } from "../../../../../gateway/src/protobuf/gen/google/api/annotations_pb.ts";
import { field_behavior, FieldBehavior } from "../../../../../gateway/src/protobuf/gen/google/api/field_behavior_pb.ts";
import { HttpRuleSchema } from "../../../../../gateway/src/protobuf/gen/google/api/http_pb.ts";
import { createTempFolder, projectFolder, startNode, within } from "@protoport/testing/process";
import { startReflectedGreenhouse } from "../../../support/greenhouses.ts";
import { shared } from "../../../../../testing/src/shared.ts";

interface Nesting {
  /** How many message types there are. Each is the type of the previous one's fields. */
  readonly levels: number;
  /** How many fields each type has. The fields have the next message type, or are strings in the last type. */
  readonly fields: number;
  readonly required?: boolean;
  /** How the request message is sent. By default, in the query. */
  readonly body?: "*";
}

/** Creates a file with a service `nested.Nested`, whose RPC accepts nested messages at `/nested`. */
function nestedMessages({ levels, fields, required = false, body }: Nesting): FileDescriptorProto {
  const options = create(FieldOptionsSchema);
  setExtension(options, field_behavior, [FieldBehavior.REQUIRED]);
  const methodOptions = create(MethodOptionsSchema);
  const pattern = { case: body === undefined ? ("get" as const) : ("post" as const), value: "/nested" };
  setExtension(methodOptions, http, create(HttpRuleSchema, { pattern, body: body ?? "" }));
  const fieldOf = (level: number, at: number) => ({
    name: `f${at}`,
    jsonName: `f${at}`,
    number: at + 1,
    label: Label.OPTIONAL,
    ...(required && { options }),
    ...(level + 1 < levels ? { type: Type.MESSAGE, typeName: `.nested.L${level + 1}` } : { type: Type.STRING }),
  });
  const method = { name: "Send", inputType: ".nested.L0", outputType: ".nested.L0", options: methodOptions };
  return create(FileDescriptorProtoSchema, {
    name: "nested.proto",
    package: "nested",
    syntax: "proto3",
    dependency: ["google/api/annotations.proto", "google/api/field_behavior.proto"],
    messageType: Array.from({ length: levels }, (_, level) => ({
      name: `L${level}`,
      field: Array.from({ length: fields }, (_each, at) => fieldOf(level, at)),
    })),
    service: [{ name: "Nested", method: [method] }],
  });
}

// Any caller can request the OpenAPI document. Fully expanded, the documents of these descriptors would not fit in
// memory.

const folder = createTempFolder();
afterAll(() => folder[Symbol.dispose]());
const greenhouse = shared(() =>
  startReflectedGreenhouse({ getReading: ({ sensor }) => ({ sensor, degreesCelsius: 21 }) }),
);

const cutOff = "Not all fields are listed here; the others can be set, too.";
const noExample = "The example is left out: it would have more than 200 fields.";

test.each<Nesting & { readonly name: string; readonly note: string | undefined }>(
  // oxfmt-ignore
  [
    { name: "a query with 20 fields in each of 5 levels", levels: 5, fields: 20, note: cutOff },
    { name: "a query with 2 fields in each of 20 levels", levels: 20, fields: 2, note: cutOff },
    { name: "a body with 2 required fields in each of 20 levels", levels: 20, fields: 2, required: true, body: "*",
      note: noExample },
    { name: "a query with 3,000 nested messages", levels: 3_000, fields: 1, note: undefined },
    { name: "a body with 2,000 nested required messages", levels: 2_000, fields: 1, required: true, body: "*",
      note: noExample },
    { name: "a message of 10,000 fields", levels: 1, fields: 10_000, body: "*", note: cutOff },
  ],
)("generating OpenAPI for $name does not block calls or SIGTERM", async ({ note, ...nesting }) => {
  await using upstream = await startReflectingServer([nestedMessages(nesting)]);
  const main = join(projectFolder, "protoport/proxy/src/command/main.ts");
  const upstreams = ["--upstream", greenhouse.baseUrl, "--upstream", `http://${upstream.address}`];
  const names = [`${greenhouse.baseUrl}=greenhouse.*`, `http://${upstream.address}=nested.*`];
  const services = names.flatMap((name) => ["--service", name]);
  const args = ["--port", "0", "--drain-delay-ms", "0", ...upstreams, ...services, "--reflection"];
  await using program = startNode([main, ...args], folder.path);
  const [, url = ""] = await program.find(/^(\S+) serves/m);
  const description = fetch(`${url}/openapi.json`).then(
    async (response) => [response.status, await response.text()] as const,
  );
  const reading = await within(fetch(`${url}/sensors/4/reading`), "a concurrent call");
  expect(await reading.json()).toMatchObject({ sensor: "4" });
  const [httpStatus, text] = await within(description, "the description");
  expect(httpStatus).toBe(200);
  expect(JSON.parse(text)).toHaveProperty("paths./nested");
  if (note !== undefined) expect(text).toContain(note);
  expect(text.length).toBeLessThan(20_000_000);
  expect(await program.stop("SIGTERM")).toBe(0);
});
