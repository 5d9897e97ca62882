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

test.each(["@protoport/gateway/engine", "@protoport/gateway/http2-client"])(
  "importing %s loads no npm packages",
  (module) => {
    const files = filesLoadedBy(module);
    expect(files.filter((file) => file.includes("/protoport/gateway/src/engine/")).length).toBeGreaterThan(20);
    expect(files.filter((file) => file.includes("/node_modules/"))).toEqual([]);
  },
);

test("importing the gateway loads connect and protobuf-es", () => {
  const files = filesLoadedBy("@protoport/gateway");
  for (const name of ["@connectrpc/connect", "@bufbuild/protobuf"]) {
    expect(files.filter((file) => file.includes(`/node_modules/${name}/`)).length).toBeGreaterThan(20);
  }
});
