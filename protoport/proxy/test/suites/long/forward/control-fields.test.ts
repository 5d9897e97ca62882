import { Code, ConnectError, type HandlerContext } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { FileService, startProxy } from "@protoport/testing/proxy";
import { exchangeHttp1, rpcRequest, wireFormats } from "@protoport/testing";
import { startFiles } from "../../../../../testing/src/gateway/files.ts";
import type { ForwardRules } from "../../../../src/create-proxy.ts";
import { controlFields } from "../../../../src/forward/control-fields.ts";

// What an upstream can make a browser do on the proxy's origin, which it shares with /docs and other upstreams.

/** One name for each name or prefix. */
const names = controlFields.flatMap((each) => each.names.map((name) => name.toLowerCase().replace("*", "something")));
const valueOf = (name: string): string => (name === "status" ? "302" : `${name} of the upstream`);

/** Sets all the fields. */
function control(fields: Headers): void {
  for (const name of names) fields.set(name, valueOf(name));
}

/** Returns the status, and which fields a caller gets, when an upstream sets all of them. */
async function fieldsOf(
  path: string,
  rules: ForwardRules = {},
): Promise<{ httpStatus: number; fields: Readonly<Record<string, string>> }> {
  await using upstream = await startFiles("listening", {
    getFile: ({ name }, { responseHeader, responseTrailer }: HandlerContext) => {
      if (name === "error") {
        const metadata = new Headers();
        control(metadata);
        throw new ConnectError("no file", Code.NotFound, metadata);
      }
      control(name === "trailer" ? responseTrailer : responseHeader);
      return { contentType: "text/html", data: Buffer.from("<script>steal()</script>") };
    },
    async *download(_, { responseHeader }) {
      control(responseHeader);
      yield { contentType: "text/html" };
    },
  });
  const url = `http://127.0.0.1:${upstream.address.port}`;
  await using proxy = await startProxy(url, [FileService.file], { upstreamOptions: { responseHeader: rules } });
  const rpc = `/${FileService.typeName}/GetFile`;
  const request = path.startsWith("/")
    ? { httpMethod: "GET", path, header: [] }
    : rpcRequest(path === "Connect" ? wireFormats["connect-json"] : wireFormats["grpc-web"], Buffer.of(), [], rpc);
  const body = path === "Connect" ? Buffer.from("{}") : request.body;
  const { httpStatus, header } = await exchangeHttp1(proxy.address, { ...request, ...(body && { body }) });
  const known = [...names, "x-content-type-options"];
  return { httpStatus, fields: Object.fromEntries(header.filter(([name]) => known.includes(name))) };
}

const sandboxed = { "content-security-policy": "sandbox", "x-content-type-options": "nosniff" };

describe("control fields of an upstream's response", () => {
  test.each([
    { from: "a header", path: "/files/a", httpStatus: 200, fields: sandboxed },
    { from: "a trailer", path: "/files/trailer", httpStatus: 200, fields: sandboxed },
    { from: "an error", path: "/files/error", httpStatus: 404, fields: {} },
    { from: "a stream of bytes", path: "/downloads/a", httpStatus: 200, fields: sandboxed },
    { from: "a header for Connect callers", path: "Connect", httpStatus: 200, fields: {} },
    { from: "a header for gRPC-Web callers", path: "gRPC-Web", httpStatus: 200, fields: {} },
  ])("in $from are not forwarded, even if allow is a wildcard", async ({ path, httpStatus, fields }) => {
    expect(await fieldsOf(path, { allow: ["*", /./] })).toEqual({ httpStatus, fields });
  });

  test("are forwarded if allow contains their exact names", async () => {
    const { httpStatus, fields } = await fieldsOf("/files/a", { allow: names.map((name) => name.toUpperCase()) });
    expect(httpStatus).toBe(302);
    const forwarded = names.filter((name) => name !== "status").map((name) => [name, valueOf(name)]);
    expect(fields).toEqual({ ...Object.fromEntries(forwarded), "x-content-type-options": "nosniff" });
  });
});
