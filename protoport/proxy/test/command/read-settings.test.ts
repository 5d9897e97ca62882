import { afterAll, expect, test } from "vitest";
import { createTempFolder } from "../../../testing/src/process/temp-folder.ts";
import { readSettings } from "../../src/command/read-settings.ts";

// Which flags must or must not be combined.

const folder = createTempFolder();
afterAll(() => folder[Symbol.dispose]());
const text = folder.write("text.pem", "no certificate");
const [one, two] = [["http://a:1"], ["http://a:1", "http://b:1"]];
const sources = "exactly one of --reflection and --descriptors is required";

test.each<{ flags: Parameters<typeof readSettings>[0]; problem: string }>([
  { flags: { reflection: true }, problem: "--upstream or --config is missing" },
  { flags: { upstream: one }, problem: sources },
  { flags: { upstream: one, reflection: true, descriptors: "a" }, problem: sources },
  { flags: { upstream: two, descriptors: "a" }, problem: "--descriptors requires exactly one --upstream" },
  {
    flags: { upstream: two, reflection: true, service: ["http://a:1=a.*"] },
    problem: "upstreams[1].services is required",
  },
  {
    flags: { upstream: one, reflection: true, service: ["http://b:1=a.*"] },
    problem: '--service must have the address of an upstream before "=", got "http://b:1"',
  },
  {
    flags: { upstream: ["https://a"], reflection: true, "upstream-tls-ca": text },
    problem: "text.pem does not contain a PEM certificate or key",
  },
])("the flags $flags are refused", async ({ flags, problem }) => {
  await expect(readSettings(flags)).rejects.toThrow(problem);
});

test("flags of the second of two upstreams are accepted", async () => {
  const service = ["http://a:1=a.*", "http://b:1=b.*"];
  const { upstreams } = await readSettings({ upstream: two, reflection: true, service });
  expect(upstreams.map(({ services }) => services)).toEqual([["a.*"], ["b.*"]]);
});
