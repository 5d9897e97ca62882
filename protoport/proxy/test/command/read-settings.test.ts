import { afterAll, expect, test } from "vitest";
import { createTempFolder } from "../../../testing/src/process/temp-folder.ts";
import { readSettings } from "../../src/command/read-settings.ts";

const folder = createTempFolder();
afterAll(() => folder[Symbol.dispose]());
const [text, empty] = [folder.write("text.pem", "no certificate"), folder.write("empty.pem", "")];
const [one, two] = [["http://a:1"], ["http://a:1", "http://b:1"]];
const sources = "exactly one of --reflection and --descriptors is required";

test.each<[flags: Parameters<typeof readSettings>[0], problem: string]>([
  [{ reflection: true }, "--upstream or --config is missing"],
  [{ upstream: one }, sources],
  [{ upstream: one, reflection: true, descriptors: "a" }, sources],
  [{ upstream: two, descriptors: "a" }, "--descriptors requires exactly one --upstream"],
  [{ upstream: two, reflection: true, service: ["http://a:1=a.*"] }, "upstreams[1].services is required"],
  [
    { upstream: one, reflection: true, service: ["http://b:1=a.*"] },
    '--service must have the address of an upstream before "=", got "http://b:1"',
  ],
  ...[text, empty].map((file): [Parameters<typeof readSettings>[0], string] => [
    { upstream: ["https://a"], reflection: true, "upstream-tls-ca": file },
    `${file} does not contain a PEM certificate or key`,
  ]),
])("the flags $0 are refused", async (flags, problem) => {
  await expect(readSettings(flags)).rejects.toThrow(problem);
});

test("flags of the second of two upstreams are accepted", async () => {
  const service = ["http://a:1=a.*", "http://b:1=b.*"];
  const { upstreams } = await readSettings({ upstream: two, reflection: true, service });
  expect(upstreams.map(({ services }) => services)).toEqual([["a.*"], ["b.*"]]);
});
