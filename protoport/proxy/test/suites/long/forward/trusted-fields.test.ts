import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { ForwardRules } from "../../../../src/create-proxy.ts";
import { identityFields } from "../../../../src/forward/identity-fields.ts";
import type { Field } from "../../../../../testing/src/http/exchange.ts";
import { client, forward, grpcFields } from "./forwarded-fields.ts";

// An upstream trusts some fields because another server sets them, so a caller cannot set them through the proxy.

/** One name for each name or prefix among the fields that identify a caller. */
const identityExamples = identityFields.flatMap(({ names }) => names.map((name) => name.replace("*", "Something")));

test("fields that identify a caller are not forwarded through a wildcard", async () => {
  const header = identityExamples.map((name): Field => [name, "1"]);
  const rules: readonly ForwardRules[] = [{}, { allow: ["*", "x-*", "cf-*", /./] }];
  for (const requestHeader of rules) {
    const { received } = await forward(header, {}, { requestHeader });
    expect(received).toEqual({ ...grpcFields, ...client });
  }
});

test("fields that identify a caller are not forwarded with underscores", async () => {
  const header = identityExamples.map((name): Field => [name.replaceAll("-", "_"), "1"]);
  const { received } = await forward(header, {}, { requestHeader: { allow: ["*"] } });
  expect(received).toEqual({ ...grpcFields, ...client });
});

test("fields that identify a caller are forwarded under their exact names", async () => {
  const header = identityExamples.map((name): Field => [name, "1"]);
  const [first = "", ...others] = identityExamples;
  const { received } = await forward(header, {}, { requestHeader: { allow: ["*", first.toUpperCase()] } });
  expect(received).toEqual({ ...grpcFields, ...client, [first.toLowerCase()]: "1" });
  const all = await forward(header, {}, { requestHeader: { allow: others } });
  expect(Object.keys(all.received)).toEqual(expect.arrayContaining(others.map((name) => name.toLowerCase())));
});

test("a caller cannot set X-Forwarded-For and X-Forwarded-Host, even if allow names them", async () => {
  const sent: readonly Field[] = [
    ["X-Forwarded-For", "192.0.2.7"],
    ["X-Forwarded-Host", "forged.example"],
    ["X-A", "other.example"],
  ];
  const allow = ["X-Forwarded-For", "X-Forwarded-Host", "X-A"];
  const { received } = await forward(sent, {}, { requestHeader: { allow, rename: { "x-a": "x-forwarded-host" } } });
  expect(received).toEqual({ ...grpcFields, ...client });
});

test.each<[name: string, header: readonly Field[], rules: ForwardRules, want: Readonly<Record<string, string>>]>(
  // oxfmt-ignore
  [
    ["replaces forged fields that already have the new name",
      [["X-Auth", "forged"], ["Authorization", "Bearer a"], ["x-auth", "forged too"]],
      { rename: { authorization: "X-Auth" } }, { "x-auth": "Bearer a" }],
    ["removes a forged field if the original field is missing", [["X-Auth", "forged"]],
      { allow: ["*", "x-auth"], rename: { authorization: "x-auth" } }, {}],
    ["does not set the new name if the original field is denied", [["X-Auth", "forged"], ["Authorization", "Bearer a"]],
      { deny: ["authorization"], rename: { authorization: "x-auth" } }, {}],
    ["can swap two names", [["X-A", "1"], ["X-B", "2"]], { rename: { "x-a": "x-b", "x-b": "x-a" } },
      { "x-a": "2", "x-b": "1" }],
  ],
)("rename %s", async (_name, header, rules, want) => {
  expect((await forward(header, {}, { requestHeader: rules })).received).toEqual({ ...grpcFields, ...client, ...want });
});

test("in responses, rename replaces a field that already has the new name", async () => {
  const rules: ForwardRules = { rename: { "x-a": "x-b" } };
  const { back } = await forward([], { "x-a": "1", "x-b": "2" }, { responseHeader: rules });
  expect(back).toMatchObject({ "x-b": "1" });
  expect((await forward([], { "x-b": "2" }, { responseHeader: rules })).back).not.toHaveProperty("x-b");
});

test("rename removes a forged Grpc-Metadata field with the new name", async () => {
  const rest = { service: () => ({ grpcMetadata: true }) };
  const requestHeader = { rename: { authorization: "x-auth" } };
  const header: readonly Field[] = [["Grpc-Metadata-X-Auth", "forged"]];
  expect((await forward(header, {}, { requestHeader }, { rest })).received).toEqual({ ...grpcFields, ...client });
});

test("the reference page lists the fields that identify a caller", () => {
  const page = readFileSync(join(import.meta.dirname, "../../../../../docs/reference/proxy-configuration.md"), "utf8");
  const rows = identityFields.map(
    ({ setBy, names }) => `| ${setBy} | ${names.map((name) => `\`${name}\``).join(", ")} |`,
  );
  expect(page).toContain(`| set by | fields |\n|---|---|\n${rows.join("\n")}\n\n`);
});
