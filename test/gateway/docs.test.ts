import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

const root = join(import.meta.dirname, "../..");
const guide = readFileSync(join(root, "docs/gateway.md"), "utf8");

/** Where options are declared, and how the guide writes their names. */
const declared = [
  { file: "src/gateway/wire/gateway.ts", type: "GatewayOptions", prefix: "" },
  { file: "src/gateway/wire/gateway.ts", type: "RestOptions", prefix: "rest." },
  { file: "src/gateway/rest/rest-router.ts", type: "RestRouterOptions", prefix: "rest." },
  { file: "src/gateway/rest/cors.ts", type: "CorsOptions", prefix: "" },
  { file: "src/gateway/wire/limits.ts", type: "Limits", prefix: "" },
];

/** Options that a type passes on under another name. */
const elsewhere = new Set(["rest.readJson", "rest.writeJson", "rest.reservedPaths", "rest"]);

function optionsOf(file: string, type: string): readonly string[] {
  const source = readFileSync(join(root, file), "utf8");
  const body = new RegExp(`interface ${type} [^{]*\\{(.*?)\\n\\}`, "s").exec(source)?.[1] ?? "";
  return [...body.matchAll(/^ {2}readonly (\w+)\??:/gm)].flatMap(([, name]) => name ?? []);
}

const options = declared.flatMap(({ file, type, prefix }) => {
  const names = optionsOf(file, type);
  if (names.length === 0) throw new Error(`${type} is not in ${file}`);
  return names.map((name) => `${prefix}${name}`).filter((name) => !elsewhere.has(name));
});

test.each(options)("the guide tells of the option %s", (option) => {
  expect(guide).toContain(`\`${option}\``);
});

test("the guide tells of no option that there is not", () => {
  const section = guide.slice(guide.indexOf("## Options"), guide.indexOf("## HTTP on REST"));
  const told = [...section.matchAll(/^\| `([\w.]+)` \|/gm)].flatMap(([, name]) => name ?? []);
  expect(told.filter((name) => !options.includes(name))).toEqual([]);
});
