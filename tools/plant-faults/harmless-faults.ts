/** Faults that no test should notice, because nothing that anybody was promised changes. */
export interface HarmlessFaults {
  /** The file, from `src/` on; without one, every file. */
  readonly file?: string;
  /** How the line of the fault begins, without its indentation. */
  readonly line: string;
  /** How the fault itself begins, as it is printed; without it, every fault of that line. */
  readonly fault?: string;
  readonly why: string;
}

export const harmlessFaults: readonly HarmlessFaults[] = [
  {
    file: "src/gateway/json/times.ts",
    line: "const [year = 0, month = 0, day = 0",
    fault: "7 → 8",
    why: "what follows the six numbers is looked at by itself",
  },
  {
    file: "src/cli/serve.ts",
    line: "if (process.stderr.writableLength > 0)",
    fault: "process.stderr.writableLength > 0 → true",
    why: "to exit at once where nothing waits to be written loses nothing",
  },
  {
    file: "src/gateway/http2/output.ts",
    line: "const isLarge = length > copyBytesMax;",
    fault: "length > copyBytesMax → length >=",
    why: "a bound between two ways that write the same",
  },
  {
    file: "src/plants/sqlite/database.ts",
    line: "const walKeptBytes = 16 * 2 ** 20;",
    fault: "16 * 2 ** 20 → 16 /",
    why: "to keep less of the log costs time alone",
  },
  {
    file: "src/gateway/json/integers.ts",
    line: "const canonicalLengthMax = 20;",
    why: "what is longer is out of range, too; to look first is cheaper",
  },
  {
    file: "src/gateway/json/integers.ts",
    line: "if (length > canonicalLengthMax) return undefined;",
    fault: "length > canonicalLengthMax → false",
    why: "what is longer is out of range, too; to look first is cheaper",
  },
  {
    file: "src/plants/store-health.ts",
    line: "else clearInterval(this.#watch);",
    fault: "clearInterval(this.#watch); → ;",
    why: "a watch that goes on sees each time that a problem is known, and looks no further",
  },
  {
    file: "src/auth/provider-url.ts",
    line: 'return hostname === "localhost"',
    fault: "/^127",
    why: "a host that ends in a number is an IPv4 address, or no host at all",
  },
  {
    file: "src/auth/principal-context.ts",
    line: 'description: "principal",',
    why: "a name for debuggers",
  },
  {
    file: "src/auth/jwt/unverified-jwt.ts",
    line: "const compactJws =",
    why: "what has another shape cannot be decoded; to look first is cheaper",
  },
  {
    file: "src/auth/jwt/jwt-algorithm.ts",
    line: 'ES256: { kty: "EC"',
    fault: "crv",
    why: "a key on another curve is refused when it is imported, too",
  },
  {
    file: "src/auth/jwt/jwt-algorithm.ts",
    line: 'ES384: { kty: "EC"',
    fault: "crv",
    why: "a key on another curve is refused when it is imported, too",
  },
  {
    file: "src/auth/jwt/jwt-algorithm.ts",
    line: 'ES512: { kty: "EC"',
    fault: "crv",
    why: "a key on another curve is refused when it is imported, too",
  },
  {
    file: "src/auth/jwt/jwt-algorithm.ts",
    line: 'EdDSA: { kty: "OKP"',
    fault: "crv",
    why: "a key on another curve is refused when it is imported, too",
  },
  {
    file: "src/auth/jwt/jwt-algorithm.ts",
    line: 'Ed25519: { kty: "OKP"',
    fault: "crv",
    why: "a key on another curve is refused when it is imported, too",
  },
  {
    file: "src/auth/jwt/fetched-keys.ts",
    line: "const isDue = this.#failures === 0",
    fault: "Date.now() - this.#askedAtMs >=",
    why: "a millisecond of ten seconds",
  },
  {
    file: "src/auth/introspection/introspection-verifier.ts",
    line: "if (Date.now() - awayAtMs < pauseMs)",
    fault: "Date.now() - awayAtMs < pauseMs → Date.now() - awayAtMs <= pauseMs",
    why: "a millisecond of a second",
  },
  {
    file: "src/plants/sqlite/thread-wake-up.ts",
    line: "return receiveMessageOnPort(port)?.message;",
    fault: "return",
    why: "who sleeps asks again at once, and finds the question then",
  },
  {
    file: "src/plants/storable-text.ts",
    line: 'return short.includes("\\0")',
    fault: 'short.includes("\\0") → true',
    why: "to look first is cheaper, and changes nothing",
  },
  {
    file: "src/plants/delete-queue.ts",
    line: "const answeredAtOnce = 64;",
    why: "a number between two bad ones: 65 would do",
  },
  {
    file: "src/plants/delete-queue.ts",
    line: "if (i > 0 && i % answeredAtOnce === 0) await nextTurn();",
    fault: "0 → 1",
    why: "the turn comes one caller later",
  },
  {
    file: "src/gateway/json/required-fields.ts",
    line: "if (checked === undefined) {",
    fault: "checked === undefined → true",
    why: "a cache that is filled again gives the same answer",
  },
  {
    file: "src/gateway/json/enums.ts",
    line: "if (names === undefined) {",
    fault: "names === undefined → true",
    why: "a cache that is filled again gives the same answer",
  },
  {
    file: "src/gateway/rest/request-reader.ts",
    line: 'return query === "" ? undefined :',
    fault: 'query === "" → false',
    why: "an empty query that is read sets nothing",
  },
  {
    file: "src/gateway/openapi/open-api-path.ts",
    line: "const number = variable === undefined || siblings.length > 1",
    fault: "indexOf → lastIndexOf",
    why: "no index is in the list twice",
  },
  {
    file: "src/gateway/rest/field-path.ts",
    line: "namesByMessage.set(message, names);",
    why: "a cache that is filled again gives the same answer",
  },
  {
    file: "src/gateway/rest/route-table.ts",
    line: 'if (!isMultiSegment(template, variable)) return "one";',
    fault: 'return "one";',
    why: "one segment that is cut out of many and joined is the same text",
  },
  {
    file: "src/gateway/rest/route-table.ts",
    line: 'if (decode === "one") return',
    fault: 'decode === "one" → false',
    why: "one segment that is cut out of many and joined is the same text",
  },
  {
    file: "src/gateway/rest/route-table.ts",
    line: "restAt: restAt < 0 ? segments.length : restAt,",
    fault: "restAt < 0 → false",
    why: "where nothing stands for many segments none is shifted",
  },
  {
    file: "src/gateway/rest/route-table.ts",
    line: "node.heightMax = Math.max(",
    fault: "segments.length - index → ",
    why: "a height that is too large makes the search longer, and finds the same",
  },
  {
    file: "src/gateway/rest/route-table.ts",
    line: "return { literals: undefined, one: undefined",
    fault: "0 → 1",
    why: "a height that is too large makes the search longer, and finds the same",
  },
  {
    file: "src/gateway/rest/raw-path.ts",
    line: "for (let at = 1; at < path.length; at++) {",
    fault: "at < path.length → ",
    why: "there is no character behind the last one, and NaN is none of those that are looked for",
  },
  {
    file: "src/gateway/rest/raw-path.ts",
    line: "const decoded = escaped ? ",
    fault: "escaped → true",
    why: "to look first is cheaper, and changes nothing",
  },
  {
    file: "src/gateway/rest/percent.ts",
    line: 'if (!text.includes("%")) return text;',
    fault: '!text.includes("%") → false',
    why: "to look first is cheaper, and changes nothing",
  },
  {
    file: "src/gateway/rest/path-variables.ts",
    line: "return false;",
    why: "undefined is as false",
  },
  {
    file: "src/gateway/rest/route-table.ts",
    line: "node.routes.push(createRoute(",
    fault: "push → unshift",
    why: "no two routes of a node have the same method and verb, so their order decides nothing",
  },
  {
    file: "src/gateway/rest/raw-path.ts",
    line: "let escaped = false;",
    why: "to look first is cheaper, and changes nothing",
  },
  {
    file: "src/auth/static-token.ts",
    line: "if (Date.now() < entry.expiresAtMs) return",
    fault: "Date.now() < entry.expiresAtMs → Date.now() <=",
    why: "a millisecond of the life of a token",
  },
  {
    file: "src/gateway/rest/path-variables.ts",
    line: "for (let at = 0; at < variables.length; at++) {",
    fault: "at < variables.length → ",
    why: "behind the last variable there is none, which the compiler has us look at",
  },
  {
    line: "question satisfies never;",
    why: "the compiler looks at it, and nothing happens when it runs",
  },
  {
    file: "src/gateway/rest/route-table.ts",
    line: "const withVerb = this.#verbs.size === 0 ?",
    fault: "this.#verbs.size === 0 → false",
    why: "to look first is cheaper, and changes nothing",
  },
  {
    file: "src/plants/sqlite/transaction.ts",
    line: "export const lockGapMs",
    why: "a shorter gap lets a busy neighbour wait longer, and nothing else",
  },
  {
    file: "src/plants/sqlite/worker.ts",
    line: "const awakeMs = availableParallelism()",
    why: "to sleep at once, or never, costs time alone",
  },
  {
    file: "src/plants/sqlite/worker.ts",
    line: "let nextDropMs = performance.now()",
    fault: "performance.now() + dropOldDeletions(Date.now()) → performance.now() -",
    why: "old records are looked for once more at once",
  },
  {
    file: "src/plants/sqlite/store.ts",
    line: "if (result.outcomes.includes(true))",
    fault: "result.outcomes.includes(true) → false",
    why: "to prove by a write what a deletion has proved costs time alone",
  },
  {
    file: "src/plants/postgres/store.ts",
    line: "if (!hasWorked) await checkWrite(session);",
    fault: "!hasWorked → true",
    why: "to prove by a write what a deletion has proved costs time alone",
  },
  {
    file: "src/plants/postgres/attempt-batch.ts",
    line: "const first = pending.filter(",
    fault: "there.has(one.id) && batch.firstOf.get(one.id) === one → there.has(one.id) ||",
    why: "a plant that is not there, or is named again, is left out by the statement, too",
  },
  {
    file: "src/gateway/rest/field-path.ts",
    line: "if (names === undefined) {",
    fault: "names === undefined → true",
    why: "a cache that is filled again gives the same answer",
  },
  {
    file: "src/gateway/rest/field-path.ts",
    line: "if (path.length === 1 && leaf.fieldKind",
    fault: 'path.length === 1 && leaf.fieldKind !== "list" && leaf.oneof === undefined → false',
    why: "a short way for most fields, which sets the same",
  },
  {
    file: "src/auth/jwt/verify-jwt.ts",
    line: "algorithms: [algorithm],",
    fault: "algorithms: [algorithm]",
    why: "the key was imported for this algorithm alone",
  },
  {
    file: "src/plants/sqlite/file-identity.ts",
    line: 'return done?.["busy"] === 0n',
    fault: 'done?.["busy"] === 0n && done["log"] === done["checkpointed"] → done?.["busy"] === 0n ||',
    why: "SQLite says that it is busy wherever it has not copied all of the log",
  },
  {
    file: "src/plants/sqlite/import.ts",
    line: "mark.run();",
    why: "to copy the records once more costs time alone",
  },
  {
    file: "src/gateway/json/integers.ts",
    line: "if (digits > exactDigitsMax) return withinRange(",
    why: "a short way for few digits, which gives the same",
  },
  {
    file: "src/gateway/json/integers.ts",
    line: "if (canonical !== undefined) return canonical;",
    fault: "canonical !== undefined → false",
    why: "a short way for most numbers, which gives the same",
  },
  {
    file: "src/gateway/json/integers.ts",
    line: "while (end > 0 && digits.charCodeAt(end - 1)",
    fault: "end > 0 → ",
    why: "there is no character before the first, and NaN is no zero",
  },
  {
    file: "src/gateway/rest/parse-path-template.ts",
    line: "if (!this.#text.startsWith(text, this.#at)) return false;",
    fault: "return false;",
    why: "undefined is as false",
  },
  {
    file: "src/gateway/rest/rest-router.ts",
    line: "this.#problems.push(",
    fault: "push → unshift",
    why: "problems may be told in any order",
  },
  {
    file: "src/gateway/rest/rest-router.ts",
    line: "if (!selectors.has(selector)) this.#problems.push(",
    fault: "push → unshift",
    why: "problems may be told in any order",
  },
  {
    file: "src/gateway/rest/rest-router.ts",
    line: "this.#bindings.push(binding);",
    fault: "push → unshift",
    why: "the table finds a binding wherever it is in the list",
  },
  {
    file: "src/gateway/rest/reachability.ts",
    line: "const segmentsMax = Math.max(0, ",
    fault: "0 → 1",
    why: "a path longer than what matters shows nothing else",
  },
  {
    file: "src/gateway/rest/reachability.ts",
    line: "return Array.from({ length: segmentsMax + 1 }",
    fault: "1 → 2",
    why: "a path longer than what matters shows nothing else",
  },
  {
    file: "src/gateway/rest/reachability.ts",
    line: 'return "x".repeat(1 + Math.max(0, ',
    fault: "0 → 1",
    why: "a longer text is as different from every literal",
  },
  {
    file: "src/gateway/rest/reachability.ts",
    line: 'return "x".repeat(1 + Math.max(0, ',
    fault: "1 → 2",
    why: "a longer text is as different from every literal",
  },
  {
    file: "src/auth/jwt/fetched-keys.ts",
    line: "return Date.now() - this.#fetchedAtMs < ",
    fault: "Date.now() - this.#fetchedAtMs < this.#timing.usableMs → Date.now() - this.#fetchedAtMs <=",
    why: "a millisecond of hours",
  },
  {
    file: "src/plants/sqlite/backup.ts",
    line: "closeSync(descriptor);",
    why: "the command that makes a backup ends, and closes what is open",
  },
];
