import { generateKeyPairSync, randomBytes, sign } from 'node:crypto'

/** A self-signed certificate for 127.0.0.1 and localhost, as PEM. It is its own authority. */
export function selfSigned(commonName: string): { key: string; cert: string; ca: string } {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const ecdsaWithSha256 = sequence(oid(0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02))
  const name = sequence(tlv(0x31, sequence(oid(0x55, 0x04, 0x03), tlv(0x0c, Buffer.from(commonName)))))
  const day = 86_400_000
  const validity = sequence(utcTime(Date.now() - day), utcTime(Date.now() + 365 * day))
  const alternativeNames = sequence(tlv(0x82, Buffer.from('localhost')), tlv(0x87, Buffer.from([127, 0, 0, 1])))
  const extensions = tlv(0xa3, sequence(sequence(oid(0x55, 0x1d, 0x11), tlv(0x04, alternativeNames))))
  const version3 = tlv(0xa0, tlv(0x02, Buffer.from([2])))
  const serial = tlv(0x02, Buffer.concat([Buffer.from([1]), randomBytes(8)]))
  const spki = publicKey.export({ type: 'spki', format: 'der' })
  const body = sequence(version3, serial, ecdsaWithSha256, name, validity, name, spki, extensions)
  const signature = tlv(0x03, Buffer.concat([Buffer.from([0]), sign('sha256', body, privateKey)]))
  const der = sequence(body, ecdsaWithSha256, signature)
  const lines = der.toString('base64').replace(/.{64}/g, '$&\n')
  const cert = `-----BEGIN CERTIFICATE-----\n${lines}\n-----END CERTIFICATE-----\n`
  return { key: privateKey.export({ type: 'pkcs8', format: 'pem' }) as string, cert, ca: cert }
}

function tlv(tag: number, content: Buffer): Buffer {
  const { length } = content
  const size = length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff]
  return Buffer.concat([Buffer.from([tag, ...size]), content])
}

const sequence = (...parts: Buffer[]) => tlv(0x30, Buffer.concat(parts))
const oid = (...bytes: number[]) => tlv(0x06, Buffer.from(bytes))

function utcTime(atMs: number): Buffer {
  const text = new Date(atMs).toISOString().replace(/[-:T]/g, '').slice(2, 14)
  return tlv(0x17, Buffer.from(`${text}Z`))
}
