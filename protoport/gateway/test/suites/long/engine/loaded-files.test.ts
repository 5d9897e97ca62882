import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";

/** Returns the URLs of all files that a separate process loads to import a module. */
function filesLoadedBy(module: string): string[] {
  const program = `
    import { registerHooks } from "node:module";
    const urls = [];
    registerHooks({ load: (url, context, next) => (urls.push(url), next(url, context)) });
    await import(${JSON.stringify(module)});
    console.log(JSON.stringify(urls.filter((url) => url.startsWith("file:"))));`;
  return JSON.parse(execFileSync(process.execPath, ["--input-type=module", "--eval", program], { encoding: "utf8" }));
}

const isInEngine = (file: string): boolean => file.includes("/protoport/gateway/src/engine/");

test("importing the HTTP/2 client loads no npm packages", () => {
  const files = filesLoadedBy("@protoport/gateway/http2-client");
  expect(files.filter(isInEngine).length).toBeGreaterThan(20);
  expect(files.filter((file) => file.includes("/node_modules/"))).toEqual([]);
});

test.each(["@protoport/gateway/fetch", "@protoport/rest-client"])("importing %s loads no engine", (module) => {
  const files = filesLoadedBy(module);
  expect(files.length).toBeGreaterThan(20);
  expect(files.filter(isInEngine)).toEqual([]);
});

test("importing the gateway loads the engine, connect and protobuf-es", () => {
  const files = filesLoadedBy("@protoport/gateway");
  expect(files.filter(isInEngine).length).toBeGreaterThan(20);
  for (const name of ["@connectrpc/connect", "@bufbuild/protobuf"])
    expect(files.filter((file) => file.includes(`/node_modules/${name}/`)).length).toBeGreaterThan(20);
});
