// Deletes a plant over REST: npx node examples/clients/delete-plant-fetch.ts http://127.0.0.1:8080 TOKEN 42
const [baseUrl = "http://127.0.0.1:8080", token = "", id = "1"] = process.argv.slice(2);

/** The error record of every answer that is not a success; `error` is a gRPC code. */
interface ErrorRecord {
  readonly error: number;
  readonly message: string;
}

// The same in every repetition of this request, so that an answer that was lost is given again.
const idempotencyKey = `"${crypto.randomUUID()}"`;

const answer = await fetch(`${baseUrl}/plants/${id}`, {
  method: "DELETE",
  headers: { authorization: `Bearer ${token}`, "idempotency-key": idempotencyKey },
  signal: AbortSignal.timeout(5_000),
});
if (answer.ok) console.log(`plant ${id} is deleted`);
else {
  const { error, message }: ErrorRecord = JSON.parse(await answer.text());
  console.log(error === 5 ? `there is no plant ${id}` : `${error}: ${message}`);
}
