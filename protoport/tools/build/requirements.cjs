"use strict";

// Says in a sentence what an installation lacks, before anything is loaded that fails for it with an error of Node's:
// modules are linked before the first of them runs, so an older peer would be a SyntaxError about one of its names.

const { dirname, join } = require("node:path");
const { name, engines, peerDependencies = {}, peerDependenciesMeta = {} } = require("../package.json");

/** The ranges are written as ^1.2.3 or >=1.2, with || between them. */
function isWithin(version, ranges) {
  const given = numbersOf(version);
  return ranges.split(" || ").some((range) => {
    const least = numbersOf(range);
    const differing = [0, 1, 2].find((at) => given[at] !== least[at]) ?? 0;
    return given[differing] >= least[differing] && (range.startsWith(">=") || given[0] === least[0]);
  });
}

function numbersOf(version) {
  return [...version.match(/\d+/g), 0, 0].slice(0, 3).map(Number);
}

/** The version of a package that an import of it finds, which its exports do not show. */
function installedVersion(peer) {
  let file;
  try {
    file = require.resolve(peer);
  } catch {
    return undefined;
  }
  for (let folder = dirname(file); folder !== dirname(folder); folder = dirname(folder)) {
    try {
      const manifest = require(join(folder, "package.json"));
      if (manifest.name === peer) return manifest.version;
    } catch {
      // The next one up.
    }
  }
  return undefined;
}

/** Returns the problem with an installed peer, in a list that is empty without one. */
function problemsOf(peer) {
  const range = peerDependencies[peer];
  const version = installedVersion(peer);
  if (version !== undefined && isWithin(version, range)) return [];
  const found = version === undefined ? "it is not installed" : `${version} is installed`;
  return [`needs ${peer} ${range}, and ${found}: npm install ${peer}@${range}`];
}

function refuse(problems) {
  if (problems.length > 0) throw new Error(problems.map((problem) => `${name} ${problem}`).join("\n"));
}

/** The versions of Node that have everything that is used; `engines` names those without known vulnerabilities. */
const usable = "^22.15 || >=23.8";

const { node, bun, deno } = process.versions;
const peers = Object.keys(peerDependencies).filter((peer) => !peerDependenciesMeta[peer]?.optional);
refuse([
  ...(isWithin(node, usable) ? [] : [`needs Node ${usable}, and this is ${node}`]),
  ...peers.flatMap(problemsOf),
]);

// Every other package loads the gateway, so a process warns once. Bun and Deno have their own HTTP/2.
if (name === "@protoport/gateway" && bun === undefined && deno === undefined && !isWithin(node, engines.node)) {
  process.emitWarning(
    `node:http2 of Node ${node} has known vulnerabilities (CVE-2026-56846, CVE-2026-56848): use Node ${engines.node}`,
    { code: "PROTOPORT_OLD_NODE" },
  );
}

/** Checks an optional peer, for an entry that needs it. */
exports.check = (peer) => refuse(problemsOf(peer));
