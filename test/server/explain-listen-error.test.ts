import { expect, test } from "vitest";
import { explainListenError } from "../../src/server/listen-error.ts";

const at = { host: "::1", port: 8080 };

test.each(
  // oxfmt-ignore
  [
    { code: "EACCES", syscall: "listen",
      want: "cannot listen on PORT: this user may not use port 8080; choose a higher port, such as 8080" },
    { code: "EAFNOSUPPORT", syscall: "listen", want: "cannot listen on HOST: message of the system" },
    { code: "EADDRINUSE", syscall: "bind",
      want: "cannot listen on PORT: port 8080 of ::1 is in use; choose another port, such as 8081" },
    { code: "EADDRINUSE", syscall: "listen", port: 65_535,
      want: "cannot listen on PORT: port 65535 of ::1 is in use; choose another port, such as 65534" },
    { code: "EAI_AGAIN", syscall: "getaddrinfo", want: 'cannot listen on HOST: it must be an address of this machine, got "::1"' },
  ],
)("explainListenError names the setting for $code from $syscall()", ({ want, port = 8080, ...fields }) => {
  const cause = Object.assign(new Error("message of the system"), fields);
  expect(explainListenError(cause, { ...at, port })).toEqual(new Error(want, { cause }));
});

test.each([
  { name: "an error of chmod()", reason: Object.assign(new Error("chmod"), { code: "EPERM", syscall: "chmod" }) },
  { name: "an error of the store", reason: Object.assign(new Error("cannot open"), { code: "ERR_STORE_OPEN" }) },
  { name: "an error without a code", reason: new Error("the port was released") },
])("explainListenError returns $name unchanged", ({ reason }) => expect(explainListenError(reason, at)).toBe(reason));
