import { once } from "node:events";
import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { type Field, fieldValue, type HttpRequest, openHttp1 } from "../../../testing/src/http/index.ts";
import { within } from "../../../testing/src/deadline.ts";
// oxfmt-ignore
import { nextEvent, openGreenhouse, startGreenhouse, waterBedProcedure
} from "../../../testing/src/gateway/greenhouse.ts";

const json: Field = ["content-type", "application/json"];
const path = "/beds/7:water";

function water(header: readonly Field[], body: string): HttpRequest {
  return { httpMethod: "POST", path, header: [json, ...header], body: Buffer.from(body) };
}

test("a client that pipelines requests gets earlier responses before 400 for bytes that are not HTTP", async () => {
  await using greenhouse = await startGreenhouse(
    { waterBed: () => Promise.resolve({ note: "first" }) },
    { endpoints: [{ path: "/page", open: true, handle: () => ({ httpStatus: 200, body: "second" }) }] },
  );
  using connection = await openHttp1(greenhouse.address);
  connection.request(water([], "{}"));
  connection.write("GET /page HTTP/1.1\r\nhost: x\r\n\r\norders\r\n\r\n");
  expect(String((await connection.readResponse()).body)).toContain("first");
  expect(String((await connection.readResponse()).body)).toContain("second");
  expect(await connection.readResponse()).toMatchObject({ httpStatus: 400 });
  expect(await connection.atEnd()).toBe(true);
});

/** Refuses the first request when its body has filled the buffer. */
function refuseWhenPaused(): () => Promise<void> {
  let calls = 0;
  return async () => {
    calls += 1;
    if (calls > 1) return;
    await within(nextEvent("pause"), "the server to pause reading");
    throw new ConnectError("no key", Code.Unauthenticated);
  };
}

describe("an unread body", () => {
  test.each([
    ["an unknown path", "/nothing", [], 404],
    ["an unsupported content type", waterBedProcedure, ["content-type: text/plain"], 415],
  ])("does not delay the response to %s even if it is malformed", async (_name, target, header, httpStatus) => {
    await using connection = await openGreenhouse(openHttp1, {});
    const head = [`POST ${target} HTTP/1.1`, "host: x", "transfer-encoding: chunked", ...header, "", ""].join("\r\n");
    connection.write(`${head}no length\r\n`);
    const response = await connection.readResponse();
    expect(response.httpStatus).toBe(httpStatus);
    expect([fieldValue(response.header, "connection"), await connection.atEnd()]).toEqual(["close", true]);
  });

  const largest = 256 * 1024;

  test("is dropped and keeps the connection open if it is small", async () => {
    await using connection = await openGreenhouse(openHttp1, { waterBed: () => ({}) });
    connection.request({ httpMethod: "POST", path: "/nothing", header: [], body: Buffer.alloc(largest) });
    const response = await connection.readResponse();
    expect(response.httpStatus).toBe(404);
    expect(fieldValue(response.header, "connection")).not.toBe("close");
    connection.request(water([], "{}"));
    expect(await connection.readResponse()).toMatchObject({ httpStatus: 200 });
  });

  test("is dropped even if reading was paused before the response", async () => {
    await using connection = await openGreenhouse(openHttp1, { waterBed: () => ({}) }, { admit: refuseWhenPaused() });
    connection.request({ httpMethod: "POST", path, header: [json], body: Buffer.alloc(largest) });
    expect(await connection.readResponse()).toMatchObject({ httpStatus: 401 });
    connection.request(water([], "{}"));
    expect(await connection.readResponse()).toMatchObject({ httpStatus: 200 });
  });

  test("over 256 KiB is read completely after a pause before the response", async () => {
    await using connection = await openGreenhouse(openHttp1, {}, { admit: refuseWhenPaused() });
    connection.request({ httpMethod: "POST", path, header: [json], body: Buffer.alloc(32 * largest) });
    expect(await connection.readResponse()).toMatchObject({ httpStatus: 401 });
    connection.socket.end();
    await within(once(connection.socket, "finish"), "the server to read the body");
    expect(await connection.atEnd()).toBe(true);
    expect(connection.socket.errored).toBeNull();
  });

  test.each<{ name: string; bytes: number; header: readonly Field[] }>([
    { name: "exceeds 256 KiB", bytes: largest + 1, header: [] },
    { name: "follows Expect: 100-continue", bytes: largest, header: [["expect", "100-continue"]] },
  ])("that $name is read completely before the connection closes", async ({ bytes, header }) => {
    await using greenhouse = await startGreenhouse({});
    using connection = await openHttp1(greenhouse.address);
    connection.request({ httpMethod: "POST", path: "/nothing", header, body: Buffer.alloc(bytes) });
    const response = await connection.readResponse();
    expect([response.httpStatus, fieldValue(response.header, "connection")]).toEqual([404, "close"]);
    expect(String(await connection.readToEnd())).toBe("");
    // Unread bytes would cause a reset, which may overtake the response.
    expect(connection.socket.errored).toBeNull();
  });
});
