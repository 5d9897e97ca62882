import { execFileSync } from "node:child_process";
import { copyFileSync, rmSync } from "node:fs";
import { basename, join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { blocksRunBy, pageBlocks } from "../../support/docs/page-blocks.ts";
import { createUserProject, packed } from "../../support/package/user-project.ts";
import { startProgram } from "../../../packages/testing/src/process/command-line.ts";

// What somebody does first, in a folder that has nothing but the tarballs.

const blocks = blocksRunBy("test/suites/package/first-program.test.ts");
const textOf = (language: string): string => blocks.find((block) => block.language === language)?.text ?? "";
const folders: string[] = [];
afterAll(() => folders.forEach((folder) => rmSync(folder, { recursive: true })));

test("the first program of the gateway's README runs after the lines below it, in a folder made by npm init", async () => {
  const project = createUserProject();
  folders.push(project.path);
  for (const tarball of Object.values(packed())) copyFileSync(tarball, join(project.path, basename(tarball)));
  // What npm init makes is not what createUserProject did.
  rmSync(join(project.path, "package.json"));
  const program =
    pageBlocks.find(({ page, language }) => page === "packages/gateway/README.md" && language === "ts")?.text ?? "";
  const listening = program.replace("await gateway.listen({ port: 8080 })", "const { port } = await gateway.listen()");
  project.write("gateway.mjs", `${listening}\nconsole.log(\`port \${port}\`);`);
  const [init = "", install = "", start = ""] = textOf("sh").split("\n");
  expect(start).toBe("node gateway.mjs");
  project.run("bash", "-c", init);
  project.run("bash", "-c", `${install} --no-audit --no-fund`);
  await using running = startProgram(process.execPath, ["gateway.mjs"], project.path, {});
  const [, port = ""] = await running.find(/port (\d+)/);
  const curl = (...more: readonly string[]): string =>
    execFileSync("curl", ["-s", ...more, `http://127.0.0.1:${port}/plantstore.v1.PlantService/DeletePlant`], {
      encoding: "utf8",
    });
  expect(curl("--json", '{"id":"8"}')).toBe("{}");
  expect(JSON.parse(curl("-d", '{"id":"8"}'))).toMatchObject({
    message: 'the content type "application/x-www-form-urlencoded" is not supported; curl sends JSON with --json',
  });
});

test("buf finds the annotations in the gateway's package, and complains of nothing in it", () => {
  const project = createUserProject();
  folders.push(project.path);
  project.run("npm", "install", "--no-audit", "--no-fund", packed()["@plantstore/gateway"]);
  project.write("buf.yaml", textOf("yaml"));
  project.write(
    "proto/shop/v1/shop.proto",
    `syntax = "proto3";
package shop.v1;
import "google/api/annotations.proto";
import "google/api/field_behavior.proto";
import "google/api/httpbody.proto";
message GetCoverRequest { string name = 1 [(google.api.field_behavior) = REQUIRED]; }
message GetCoverResponse { google.api.HttpBody cover = 1; }
service ShopService {
  rpc GetCover(GetCoverRequest) returns (GetCoverResponse) {
    option (google.api.http) = { get: "/v1/{name=books/*}/cover" response_body: "cover" };
  }
}
`,
  );
  expect(project.tryToRun("buf", "lint")).toBe("");
  expect(project.run("buf", "build", "-o", "set.json")).toBe("");
  expect(project.run("cat", "set.json")).toContain('"get":"/v1/{name=books/*}/cover"');
});
