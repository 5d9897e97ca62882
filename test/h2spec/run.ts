import { execFileSync, spawn, spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import type { Http2Stream } from "../../src/gateway/http2/index.ts";
import { answer, receiving, startEngine } from "../support/http2-engine.ts";

// `npm run test:h2spec`: runs h2spec, the conformance suite of HTTP/2, against the gateway's own engine. Needs Go,
// for the suite. The engine listens by itself: on a port that it shares with HTTP/1.1, a preface that is wrong is
// a request of HTTP/1.1 that is wrong. Arguments go to the suite: `-- --verbose http2/6.9`.

const suiteModule = "github.com/summerwind/h2spec/cmd/h2spec@v2.2.1";

/** The cases of this release, the strict ones among them. */
const casesWanted = 146;

/** Milliseconds to an answer: as long as it takes to open the streams that together are too many. */
const answerAfterMs = 20;

const suite = join(execFileSync("go", ["env", "GOPATH"], { encoding: "utf8" }).trim(), "bin", "h2spec");
if (spawnSync(suite, ["--version"]).error !== undefined) {
  execFileSync("go", ["install", suiteModule], { stdio: "inherit" });
}

await using engine = await startEngine({ serve: answerLater, limits: { concurrentStreams: 16 } });
const { address, port } = engine.address;
const child = spawn(suite, ["-h", address, "-p", String(port), "--strict", ...process.argv.slice(2)], {
  stdio: ["ignore", "pipe", "inherit"],
});
const output = await text(child.stdout);
// What went wrong, if anything, and the count.
const failures = output.indexOf("Failures:");
process.stdout.write(failures < 0 ? `${output.trimEnd().split("\n").at(-1)}\n` : output.slice(failures));
const [, passed = 0, skipped = 0, failed = 0] =
  /(\d+) passed, (\d+) skipped, (\d+) failed/.exec(output)?.map(Number) ?? [];
// A case that does not apply is one that nobody has looked at.
const wrong = skipped + failed;
const file = process.env["TEST_REPORT"];
if (file !== undefined) writeFileSync(file, JSON.stringify({ numPassedTests: passed, numFailedTests: wrong }));
// Arguments choose cases; without any it must be all of them.
const isEnough = process.argv.length > 2 ? passed > 0 : passed === casesWanted;
process.exitCode = wrong === 0 && isEnough ? 0 : 1;

function answerLater(stream: Http2Stream): void {
  stream.receiver = receiving(stream);
  setTimeout(() => answer(stream, Buffer.from("answer")), answerAfterMs);
}
