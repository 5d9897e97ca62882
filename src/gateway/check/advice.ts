/** What to do about each problem of a rule, by how the gateway words it. */
const advices: readonly (readonly [problem: RegExp, advice: string])[] = [
  [/ is the same as /, "Give one of the two another path or method, or leave one RPC out."],
  [/ is never reached, /, "Give it a path that the others leave free, or leave one RPC out."],
  [
    /(?:path variable|body|response_body) ".*" is no field of /,
    "Name a field of that message, as the definition writes it.",
  ],
  [
    / is repeated, a map or a message/,
    "Let the path have a scalar field instead; this one fits into the body, or a list into the query.",
  ],
  [
    / can never be a value of its field/,
    "Write literals outside of the variable, as in plants/{id}, or make the field a string.",
  ],
  [/ is a field that the path binds/, 'Bind a field inside of it in the path instead, or take body: "*".'],
  [/, of which the path binds a part/, "Let the path bind nothing of it: the message has a JSON form of its own."],
  [/additional_bindings are nested/, "Put all additional_bindings side by side into the rule itself."],
  [/a binding has no method and path/, "Give it one of get, put, post, delete, patch and custom."],
  [
    /custom kind ".*" is no HTTP method|has a method that no parser of HTTP\/1\.1 lets through/,
    "Take a method that node's parser knows, such as PROPFIND, or post with a verb: /plants/{id}:archive.",
  ],
  [
    /streams what could look like an error/,
    "Turn streamInResults of rest.service on (--rest streamInResults), or rename the field of the answer.",
  ],
  [/has the path of an RPC or an endpoint/, "Give it another path."],
  [
    /takes a stream of messages, and has no body for them/,
    'Give it body: "*", or a field for the messages, or leave the RPC out.',
  ],
  [/takes a stream, whose first message alone can have /, 'Let body: "*" have that field, or leave the RPC out.'],
  [
    /path template ".*" .* at character /,
    "Write it by the grammar in google/api/http.proto: literals, *, ** and {variables} between slashes, then :verb.",
  ],
  [/selector ".*" is no RPC/, "Name an RPC as package.Service.Method, or take out what is no service of this gateway."],
];

/** Returns what to do about a problem; `undefined` for what only its message can say. */
export function adviceFor(problem: string): string | undefined {
  return advices.find(([wording]) => wording.test(problem))?.[1];
}
