import { createServer } from "node:http";
import { stripTypeScriptTypes } from "node:module";
import { globSync, readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { extname, join, normalize } from "node:path";
import { projectFolder, startOnLoopback } from "@protoport/testing";

/** A site with a separate origin, whose pages import this project's modules and packages. */
export type ModuleServer = { readonly origin: string; [Symbol.asyncDispose](): Promise<void> };

// The import map for generated code and client packages, which a bundler would resolve.
const imports: Readonly<Record<string, string>> = {
  "@bufbuild/protobuf": "/node_modules/@bufbuild/protobuf/dist/esm/index.js",
  "@bufbuild/protobuf/codegenv2": "/node_modules/@bufbuild/protobuf/dist/esm/codegenv2/index.js",
  "@bufbuild/protobuf/reflect": "/node_modules/@bufbuild/protobuf/dist/esm/reflect/index.js",
  "@bufbuild/protobuf/wire": "/node_modules/@bufbuild/protobuf/dist/esm/wire/index.js",
  "@bufbuild/protobuf/wkt": "/node_modules/@bufbuild/protobuf/dist/esm/wkt/index.js",
  "@connectrpc/connect": "/node_modules/@connectrpc/connect/dist/esm/index.js",
  "@connectrpc/connect/protocol": "/node_modules/@connectrpc/connect/dist/esm/protocol/index.js",
  "@connectrpc/connect/protocol-connect": "/node_modules/@connectrpc/connect/dist/esm/protocol-connect/index.js",
  "@connectrpc/connect/protocol-grpc": "/node_modules/@connectrpc/connect/dist/esm/protocol-grpc/index.js",
  "@connectrpc/connect/protocol-grpc-web": "/node_modules/@connectrpc/connect/dist/esm/protocol-grpc-web/index.js",
  ...packageImports(),
  "@connectrpc/connect-web": "/protoport/test/suites/browser/node_modules/@connectrpc/connect-web/dist/esm/index.js",
};

/** Returns the import map for this project's package entries, which the REST transport and generated code import. */
function packageImports(): Readonly<Record<string, string>> {
  const packages = globSync("protoport/*/package.json", { cwd: projectFolder }).map((file) => file.split("/")[1] ?? "");
  const entries = packages.flatMap((folder) => {
    const manifest = readFileSync(join(projectFolder, "protoport", folder, "package.json"), "utf8");
    const { name, exports = {} }: { name: string; exports?: Readonly<Record<string, string>> } = JSON.parse(manifest);
    return Object.entries(exports).map(([entry, file]) => [
      `${name}${entry.slice(1)}`,
      `/protoport/${folder}${file.slice(1)}`,
    ]);
  });
  return Object.fromEntries(entries);
}

const page = `<!doctype html><title>A shop</title><script type="importmap">${JSON.stringify({ imports })}</script>`;

/** Serves an empty page at `/`, and the project's files as modules, without types. Dispose it with `await using`. */
export async function startModuleServer(): Promise<ModuleServer> {
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? "/", "http://localhost");
    readModule(pathname).then(
      ({ contentType, body }) => response.setHeader("content-type", contentType).end(body),
      () => response.writeHead(404).end(),
    );
  });
  const { baseUrl: origin, [Symbol.asyncDispose]: close } = await startOnLoopback(server);
  return { origin, [Symbol.asyncDispose]: close };
}

async function readModule(pathname: string): Promise<{ contentType: string; body: string }> {
  if (pathname === "/") return { contentType: "text/html", body: page };
  const text = await readFile(join(projectFolder, normalize(pathname)), "utf8");
  const body = extname(pathname) === ".ts" ? stripTypeScriptTypes(text) : text;
  return { contentType: "text/javascript", body };
}
