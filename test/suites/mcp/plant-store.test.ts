import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { beforeAll, describe, expect, test } from "vitest";
import { shared } from "../../../protoport/testing/src/shared.ts";
import { inspect } from "../../../protoport/gateway/test/suites/mcp/inspector.ts";
// oxfmt-ignore
import { type Connected, connect1, connect2, connectWithoutToken
} from "../../../protoport/gateway/test/suites/mcp/typescript-clients.ts";
import { closing, openPython, projectFolder } from "@protoport/testing/process";
import { startToolServer } from "./tool-server.ts";

// The official MCP clients delete plants in the plant store, with an identity provider's tokens.

const tool = "plantstore_v1_PlantService_DeletePlant";
let token: string;
let otherScope: string;
const server = shared(() => startToolServer());
beforeAll(async () => {
  token = await server.tokenWith("plants:delete");
  otherScope = await server.tokenWith("plants:read");
});

/** What a client gets: the tool names, and for each call the structured result or the error's text. */
type Results = Readonly<Record<"tools" | "deleted" | "repeated" | "notFound" | "invalid", unknown>>;

function expectedFor(plant: string): Results {
  const [notFound, invalid] = [`NOT_FOUND: plant ${plant} not found`, 'INVALID_ARGUMENT: id: "rose" is not an int64'];
  return { tools: [tool], deleted: {}, repeated: {}, notFound, invalid };
}

/** Deletes a plant, repeats the call with and without its idempotency key, and calls with an invalid id. */
async function deleteWith(connected: Connected, plant: string): Promise<Results> {
  const call = async (id: string, _meta: Record<string, unknown> = {}): Promise<unknown> => {
    const request = { name: tool, arguments: { id }, _meta };
    const { isError, content, structuredContent } = await connected.callTool(request);
    const [first]: { text?: string }[] = JSON.parse(JSON.stringify(content));
    return isError === true ? first?.text : structuredContent;
  };
  const key = { idempotencyKey: `key-${plant}` };
  const { tools } = await connected.listTools();
  const results = {
    tools: tools.map(({ name }) => name),
    deleted: await call(plant, key),
    repeated: await call(plant, key),
    notFound: await call(plant),
    invalid: await call("rose"),
  };
  await connected.close();
  return results;
}

async function deleteFromPython(mode: string, plant: string): Promise<Results> {
  const programs = await openPython(join(projectFolder, "protoport/gateway/test/suites/mcp/requirements.txt"));
  const args = [join(import.meta.dirname, "plant_store.py"), server.url, `Bearer ${token}`, mode, plant];
  const { stdout } = await promisify(execFile)(join(programs, "python"), args, { timeout: 60_000 });
  return JSON.parse(stdout);
}

type Call = (plant: string) => Promise<Results>;

test.each<{ name: string; plant: string; call: Call }>(
  // oxfmt-ignore
  [
    { name: "version 2 of the TypeScript client without initialize", plant: "1",
      call: async (plant) => await deleteWith(await connect2(server.url, "2026-07-28", `Bearer ${token}`), plant) },
    { name: "version 1 of the TypeScript SDK", plant: "2",
      call: async (plant) => await deleteWith(await connect1(server.url, `Bearer ${token}`), plant) },
    { name: "the Python client without initialize", plant: "3",
      call: (plant) => deleteFromPython("2026-07-28", plant) },
    { name: "the Python client with initialize", plant: "4", call: (plant) => deleteFromPython("legacy", plant) },
  ],
)("$name deletes a plant, and receives the errors of failed calls", async ({ plant, call }) => {
  expect(await call(plant)).toEqual(expectedFor(plant));
});

test("the MCP inspector lists and calls the tool, but requires a token", async () => {
  const list = await inspect(server.url, `Bearer ${token}`, ["--method", "tools/list", "--strict"]);
  expect(JSON.parse(list)).toMatchObject({ tools: [{ name: tool, annotations: { destructiveHint: true } }] });
  const args = ["--method", "tools/call", "--tool-name", tool, "--tool-arg", "id=6"];
  expect(JSON.parse(await inspect(server.url, `Bearer ${token}`, args))).toMatchObject({ structuredContent: {} });
  await expect(inspect(server.url, "none", args)).rejects.toThrow();
});

describe.each([
  { name: "client, version 2,", connect: (authorization: string) => connect2(server.url, "2026-07-28", authorization) },
  { name: "SDK, version 1,", connect: (authorization: string) => connect1(server.url, authorization) },
])("the TypeScript $name", ({ connect }) => {
  test.each([
    { name: "no token", authorization: "" },
    { name: "an unknown token", authorization: "Bearer unknown" },
  ])("with $name is refused", async ({ authorization }) => {
    const refused = connect(authorization);
    await expect(refused).rejects.toThrow(/401|[Uu]nauthorized|a bearer token is required|the token is not valid/);
  });

  test("with another scope's token can neither list nor call the tool", async () => {
    await using connected = closing(await connect(`Bearer ${otherScope}`));
    expect((await connected.listTools()).tools).toEqual([]);
    await expect(connected.callTool({ name: tool, arguments: { id: "7" } })).rejects.toThrow(/scope|403/);
  });
});

test("a client without a token discovers the authorization server, and then deletes", async () => {
  expect(await deleteWith(await connectWithoutToken(server.url, server.issuer), "8")).toEqual(expectedFor("8"));
  const want = [{ grant_type: "client_credentials", resource: server.url, scope: "plants:delete" }];
  expect(server.tokenRequests).toEqual(want);
});
