// The floor: no credential, no routing and no store. Whatever it is asked, it reads to its end and answers with the
// empty JSON message of Connect.

// As `require` has it: for an `import`, node loads what its lazy exports stand for, WebSocket and with it fetch.
const { createServer } = process.getBuiltinModule("node:http");
const server = createServer((request, response) => {
  request.resume().on("end", () => {
    response.writeHead(200, { "content-type": "application/json", "content-length": 2 }).end("{}");
  });
});
server.listen(0, "127.0.0.1", () => {
  const address = server.address();
  console.error(`port ${typeof address === "object" ? address?.port : address}`);
});
