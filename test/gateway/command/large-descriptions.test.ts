import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { GreenhouseService } from "../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { createGateway } from "../../../src/gateway/index.ts";
import { createReflectionService, ServerReflection } from "../../../src/gateway/reflection/index.ts";
import { within } from "../../support/deadline.ts";
import { nestedMessages, type Nesting } from "../../support/gateway/nested-messages.ts";
import { startReflectingServer } from "../../support/gateway/reflecting-server.ts";
import { projectFolder } from "../../support/process/child-program.ts";
import { startNode } from "../../support/process/command-line.ts";
import { createTempFolder } from "../../support/process/temp-folder.ts";

// Upstreams whose descriptors, written out, would be larger than any memory: anyone may ask the proxy for a description.

const folder = createTempFolder();
afterAll(() => folder[Symbol.dispose]());

const greenhouse = createGateway({
  routes: (router) => {
    router.service(GreenhouseService, { getReading: ({ sensor }) => ({ sensor, degreesCelsius: 21 }) });
    router.service(ServerReflection, createReflectionService([GreenhouseService]));
  },
});
const { port } = await greenhouse.listen({ host: "127.0.0.1" });
afterAll(() => greenhouse.close());

const cutOff = "More fields can be set than are listed here.";
const noExample = "There is no example: it would have more than 200 fields.";

test.each<Nesting & { readonly name: string; readonly says: string | undefined }>([
  { name: "20 fields in each of 5 levels, as a query", levels: 5, fields: 20, says: cutOff },
  { name: "2 fields in each of 20 levels, as a query", levels: 20, fields: 2, says: cutOff },
  {
    name: "2 fields in each of 20 levels, which are required",
    levels: 20,
    fields: 2,
    required: true,
    body: "*",
    says: noExample,
  },
  { name: "a chain of 3,000 messages, as a query", levels: 3_000, fields: 1, says: undefined },
  {
    name: "a chain of 2,000 messages, which are required",
    levels: 20_000,
    fields: 1,
    required: true,
    body: "*",
    says: noExample,
  },
  { name: "a message of 10,000 fields", levels: 1, fields: 10_000, body: "*", says: cutOff },
])(
  "$name: the description is short, other calls are answered meanwhile, and SIGTERM ends the proxy",
  async ({ says, ...nesting }) => {
    await using upstream = await startReflectingServer([nestedMessages(nesting)]);
    const main = join(projectFolder, "src/gateway/command/main.ts");
    const upstreams = ["--upstream", `http://127.0.0.1:${port}`, "--upstream", `http://${upstream.address}`];
    const words = ["--port", "0", "--drain-delay-ms", "0", ...upstreams, "--reflection"];
    await using program = startNode([main, "proxy", ...words], folder.path);
    const [, url = ""] = await program.find(/^(\S+) serves/m);
    const description = fetch(`${url}/openapi.json`).then(async (response) => {
      return { httpStatus: response.status, text: await response.text() };
    });
    const reading = await within(fetch(`${url}/sensors/4/reading`), "a call meanwhile");
    expect(await reading.json()).toMatchObject({ sensor: "4" });
    const { httpStatus, text } = await within(description, "the description");
    expect(httpStatus).toBe(200);
    expect(JSON.parse(text)).toHaveProperty("paths./nested");
    if (says !== undefined) expect(text).toContain(says);
    expect(text.length).toBeLessThan(20_000_000);
    program.process.kill("SIGTERM");
    expect(await program.end()).toBe(0);
  },
);
