import { expect, test } from "vitest";
import { proxyConfigurationSchema, settingTable } from "../../src/settings/index.ts";
import { settingRows } from "../../src/settings/setting-flags.ts";

test("every setting has a description, which the schema contains", () => {
  const rows = settingRows();
  expect(rows.length).toBeGreaterThan(80);
  expect(rows.filter(({ about }) => !/^[A-Z`].*\.$/.test(about)).map(({ path }) => path)).toEqual([]);
  const table = settingTable().join("\n");
  const values = rows.filter(({ type }) => type !== "mapping");
  expect(values.filter(({ path }) => !table.includes(`\`${path}\``))).toEqual([]);
  const schema = JSON.stringify(proxyConfigurationSchema());
  expect(rows.filter(({ about }) => !schema.includes(JSON.stringify(about)))).toEqual([]);
  expect(proxyConfigurationSchema()).toMatchObject({ required: ["upstreams"], additionalProperties: false });
});

test("the schema contains the bounds of numbers", () =>
  expect(proxyConfigurationSchema()).toMatchObject({
    properties: {
      listen: { properties: { port: { type: "integer", minimum: 0, maximum: 65_535 } } },
      rateLimit: { properties: { perAddress: { type: "number", minimum: 0.001, maximum: 1_000_000 } } },
    },
  }));
