import { rmSync } from "node:fs";
import { afterAll, expect, test } from "vitest";
import { blocksRunBy } from "../../support/docs/page-blocks.ts";
import { createUserProject, packed } from "../../support/package/user-project.ts";

// The files of google/api in the gateway's package, which compilers of definitions import.

const blocks = blocksRunBy("test/suites/package/annotations.test.ts");
const textOf = (language: string): string => blocks.find((block) => block.language === language)?.text ?? "";
const folders: string[] = [];
afterAll(() => folders.forEach((folder) => rmSync(folder, { recursive: true })));

test("buf finds the annotations in the gateway's package and reports no problems", () => {
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
