BEGIN TRANSACTION;
CREATE TABLE admins (token_hash BLOB PRIMARY KEY, created INTEGER NOT NULL);
INSERT INTO "admins" VALUES(X'32AC5825E7E97036CAE508A2AA784FDF92B2B15B84657789667D7955E4D1F6C2',1794823392);
CREATE TABLE batches (
            batch BLOB PRIMARY KEY, receipt BLOB NOT NULL) WITHOUT ROWID;
INSERT INTO "batches" VALUES(X'342A4E978FB8A73DE2FDD264AE4A0B36',X'89DE791110D9396B20E1CE92B9498A0A00000032');
INSERT INTO "batches" VALUES(X'5385881E33C3A691FE462E9EAC0BD3EB',X'6E15C2AD34A00BE4BBBD4FCE236AF95B00000001');
INSERT INTO "batches" VALUES(X'5DA1300BF5636AA29179FAB7A32988EE',X'0293AECBD2AD7F5FE8F9095DDCBA01280000001D');
INSERT INTO "batches" VALUES(X'76E089213C96D5680ABDCA88A80B3F13',X'DB1EB5D314EF8B83AAB666C3CC6779B200000001');
CREATE TABLE collections (
            number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, created INTEGER NOT NULL, previous TEXT REFERENCES collections (id),
            policy TEXT NOT NULL, mechanism TEXT NOT NULL, certificate TEXT NOT NULL, about TEXT NOT NULL,
            key_hash BLOB);
INSERT INTO "collections" VALUES(1,'tu6uua4cmfazbnsl',1794823393,NULL,'{"domain":{"values":["none","flu","hiv","cancer","other"]},"policy":{"epsilon":"1","kind":"high-low","sensitive":["flu","hiv","cancer"]}}','{"domain":{"values":["none","flu","hiv","cancer","other"]},"layout":[{"frame_bits":192,"lanes":3,"numbers":[[32,32]],"planes":2,"planes_start":64}],"mechanism":"parts","parameters":{"kind":[0],"kinds":[{"mechanism":"subset-selection","parameters":{"coin":3,"epsilon":"1","planes":2,"size":2,"threshold":"9848952585754895021"},"size":3}],"part_of":[0,0,0,0,0],"unprotected":[0,4]},"report":{"bits":5,"encoding":"parted"},"version":1}','{
  "format": "sfumato-certificate",
  "version": 1,
  "holds": true,
  "worst": {
    "violated": false,
    "excess": "-3.575667882552858e-20",
    "left": "46742440733173998253/110680464442257309696",
    "right": "8597791487954656595/55340232221128654848",
    "epsilon": "1",
    "names": [
      "hiv",
      "none"
    ]
  },
  "output": "03",
  "fault": null,
  "evidence": "law read from the sampler, every branch of all 5 values",
  "read": "all",
  "mechanism_hash": "89f5a5e70215004bc20e455ce482f9e861442333ac849a5fb396a298ab5cbec5",
  "policy_hash": "868d28b1d50aaf6137e7bb2814934212d60c3ba5997b48fb6e067a3e7761f6ea",
  "mechanism": {
    "mechanism": "parts",
    "version": 1,
    "domain": {
      "values": [
        "none",
        "flu",
        "hiv",
        "cancer",
        "other"
      ]
    },
    "parameters": {
      "part_of": [
        0,
        0,
        0,
        0,
        0
      ],
      "unprotected": [
        0,
        4
      ],
      "kinds": [
        {
          "mechanism": "subset-selection",
          "size": 3,
          "parameters": {
            "epsilon": "1",
            "size": 2,
            "threshold": "9848952585754895021",
            "coin": 3,
            "planes": 2
          }
        }
      ],
      "kind": [
        0
      ]
    },
    "report": {
      "encoding": "parted",
      "bits": 5
    },
    "layout": [
      {
        "frame_bits": 192,
        "numbers": [
          [
            32,
            32
          ]
        ],
        "lanes": 3,
        "planes": 2,
        "planes_start": 64
      }
    ]
  },
  "policy": {
    "domain": {
      "values": [
        "none",
        "flu",
        "hiv",
        "cancer",
        "other"
      ]
    },
    "policy": {
      "kind": "high-low",
      "sensitive": [
        "flu",
        "hiv",
        "cancer"
      ],
      "epsilon": "1"
    }
  }
}
','{"title":"survey 0, renamed","description":"Which illness?","submission":"open","results":"public","listed":true,"origins":["https://a.example"],"keep_days":null}',NULL);
INSERT INTO "collections" VALUES(2,'kc2uxnd3eho6www7',1794823393,NULL,'{"domain":{"values":["none","flu","hiv","cancer","other"]},"policy":{"epsilon":"1","kind":"uniform"}}','{"domain":{"values":["none","flu","hiv","cancer","other"]},"layout":{"frame_bits":64,"lanes":0,"numbers":[[32,32],[0,32]],"planes":0,"planes_start":0},"mechanism":"randomized-response","parameters":{"epsilon":"1","threshold":"4717977891582421986"},"report":{"bits":3,"encoding":"index"},"version":1}','{
  "format": "sfumato-certificate",
  "version": 1,
  "holds": true,
  "worst": {
    "violated": false,
    "excess": "-6.190649351662748e-20",
    "left": "932966391000980989/2305843009213693952",
    "right": "1372876618212712963/9223372036854775808",
    "epsilon": "1",
    "names": [
      "none",
      "flu"
    ]
  },
  "output": "00",
  "fault": null,
  "evidence": "law read from the sampler, every branch of all 5 values",
  "read": "all",
  "mechanism_hash": "6f0cfbccce74149c6f7d2a8c7ee940e6e8195c274e6e437e87ae7b36a61d36ff",
  "policy_hash": "9cd8da800b6f84a1701dd09b9cb452f349f67fad383a420dcc6e280756d16429",
  "mechanism": {
    "mechanism": "randomized-response",
    "version": 1,
    "domain": {
      "values": [
        "none",
        "flu",
        "hiv",
        "cancer",
        "other"
      ]
    },
    "parameters": {
      "epsilon": "1",
      "threshold": "4717977891582421986"
    },
    "report": {
      "encoding": "index",
      "bits": 3
    },
    "layout": {
      "frame_bits": 64,
      "numbers": [
        [
          32,
          32
        ],
        [
          0,
          32
        ]
      ],
      "lanes": 0,
      "planes": 0,
      "planes_start": 0
    }
  },
  "policy": {
    "domain": {
      "values": [
        "none",
        "flu",
        "hiv",
        "cancer",
        "other"
      ]
    },
    "policy": {
      "kind": "uniform",
      "epsilon": "1"
    }
  }
}
','{"title":"survey 1","description":"","submission":"key","results":"public","listed":true,"origins":[],"keep_days":0}',X'497A978EB549188C2EDD936D62295BD130DE4688E9A04440FC5E36C150FCDB86');
INSERT INTO "collections" VALUES(3,'skfbcfqqsjtjamyo',1794823393,NULL,'{"domain":{"size":130},"policy":{"epsilon":"1","kind":"uniform"}}','{"domain":{"size":130},"layout":{"frame_bits":1536,"lanes":130,"numbers":[],"planes":8,"planes_start":0},"mechanism":"unary-encoding","parameters":{"epsilon":"1","optimized":false,"other":"6964396094736529935","own":"11482347978973021681"},"report":{"bits":130,"encoding":"bitmap"},"version":1}','{
  "format": "sfumato-certificate",
  "version": 1,
  "holds": true,
  "worst": {
    "violated": false,
    "excess": "-9.651070413956362e-20",
    "left": "131844315110225835547707793227696065761/340282366920938463463374607431768211456",
    "right": "48502812964381429241398624125151104225/340282366920938463463374607431768211456",
    "epsilon": "1",
    "names": [
      0,
      1
    ]
  },
  "output": "0100000000000000000000000000000000",
  "fault": null,
  "evidence": "stated law; the sampler read bit by bit for 0, 65, 129, where no bit before is set, and equal to it there",
  "read": "some",
  "mechanism_hash": "9b27c8ba9637efa10bcc298cf21d2fe156baa928bca0f75c6ceacb353eb53fcb",
  "policy_hash": "68209a151611bc872f85069f2fa1d91b48280767463b8c555ad76418e66ff1b7",
  "mechanism": {
    "mechanism": "unary-encoding",
    "version": 1,
    "domain": {
      "size": 130
    },
    "parameters": {
      "epsilon": "1",
      "optimized": false,
      "own": "11482347978973021681",
      "other": "6964396094736529935"
    },
    "report": {
      "encoding": "bitmap",
      "bits": 130
    },
    "layout": {
      "frame_bits": 1536,
      "numbers": [],
      "lanes": 130,
      "planes": 8,
      "planes_start": 0
    }
  },
  "policy": {
    "domain": {
      "size": 130
    },
    "policy": {
      "kind": "uniform",
      "epsilon": "1"
    }
  }
}
','{"title":"survey 2","description":"","submission":"token","results":"admin","listed":false,"origins":[],"keep_days":null}',NULL);
INSERT INTO "collections" VALUES(4,'va7owggv66skn4ag',1794823393,'tu6uua4cmfazbnsl','{"domain":{"values":["none","flu","hiv","cancer","other"]},"policy":{"epsilon":"ln 3","kind":"uniform"}}','{"domain":{"values":["none","flu","hiv","cancer","other"]},"layout":{"frame_bits":128,"lanes":5,"numbers":[[32,32]],"planes":1,"planes_start":64},"mechanism":"subset-selection","parameters":{"coin":1,"epsilon":"ln 3","planes":1,"size":2,"threshold":"8198552921648689607"},"report":{"bits":5,"encoding":"bitmap"},"version":1}','{
  "format": "sfumato-certificate",
  "version": 1,
  "holds": true,
  "worst": {
    "violated": false,
    "excess": "-1.6263032587282566e-20",
    "left": "61489146912365172053/368934881474191032320",
    "right": "10248191152060862009/184467440737095516160",
    "epsilon": "ln 3",
    "names": [
      "flu",
      "hiv"
    ]
  },
  "output": "03",
  "fault": null,
  "evidence": "law read from the sampler, every branch of all 5 values",
  "read": "all",
  "mechanism_hash": "2fd836df1665010149f8fcc454664b54af8f6840184a2795a417f4d44266e9ba",
  "policy_hash": "9c2c45adc6b2fd1d3f75803260f1437038c180f8487948a351dcca4b5fe6507a",
  "mechanism": {
    "mechanism": "subset-selection",
    "version": 1,
    "domain": {
      "values": [
        "none",
        "flu",
        "hiv",
        "cancer",
        "other"
      ]
    },
    "parameters": {
      "epsilon": "ln 3",
      "size": 2,
      "threshold": "8198552921648689607",
      "coin": 1,
      "planes": 1
    },
    "report": {
      "encoding": "bitmap",
      "bits": 5
    },
    "layout": {
      "frame_bits": 128,
      "numbers": [
        [
          32,
          32
        ]
      ],
      "lanes": 5,
      "planes": 1,
      "planes_start": 64
    }
  },
  "policy": {
    "domain": {
      "values": [
        "none",
        "flu",
        "hiv",
        "cancer",
        "other"
      ]
    },
    "policy": {
      "kind": "uniform",
      "epsilon": "ln 3"
    }
  }
}
','{"title":"survey 3","description":"","submission":"open","results":"public","listed":true,"origins":[],"keep_days":30}',NULL);
CREATE TABLE counts (
            collection TEXT NOT NULL, page INTEGER NOT NULL, counts BLOB NOT NULL,
            PRIMARY KEY (collection, page));
INSERT INTO "counts" VALUES('tu6uua4cmfazbnsl',0,X'2400000000000000270000000000000029000000000000000F000000000000000700000000000000');
INSERT INTO "counts" VALUES('kc2uxnd3eho6www7',0,X'200000000000000007000000000000000D000000000000000C000000000000001000000000000000');
INSERT INTO "counts" VALUES('skfbcfqqsjtjamyo',0,X'01000000000000000300000000000000020000000000000001000000000000000300000000000000000000000000000001000000000000000200000000000000030000000000000002000000000000000100000000000000020000000000000001000000000000000200000000000000010000000000000001000000000000000300000000000000010000000000000001000000000000000000000000000000010000000000000002000000000000000100000000000000000000000000000000000000000000000100000000000000010000000000000001000000000000000100000000000000010000000000000000000000000000000100000000000000030000000000000000000000000000000200000000000000010000000000000001000000000000000100000000000000010000000000000000000000000000000100000000000000010000000000000000000000000000000100000000000000000000000000000001000000000000000100000000000000010000000000000003000000000000000100000000000000000000000000000002000000000000000100000000000000010000000000000000000000000000000100000000000000000000000000000002000000000000000200000000000000000000000000000001000000000000000000000000000000010000000000000001000000000000000200000000000000010000000000000000000000000000000100000000000000010000000000000001000000000000000100000000000000000000000000000001000000000000000100000000000000010000000000000000000000000000000200000000000000000000000000000003000000000000000100000000000000010000000000000000000000000000000200000000000000030000000000000000000000000000000100000000000000030000000000000002000000000000000000000000000000010000000000000003000000000000000200000000000000020000000000000001000000000000000000000000000000010000000000000001000000000000000100000000000000010000000000000001000000000000000200000000000000000000000000000001000000000000000100000000000000010000000000000001000000000000000100000000000000010000000000000000000000000000000100000000000000010000000000000001000000000000000200000000000000030000000000000000000000000000000100000000000000010000000000000001000000000000000000000000000000030000000000000002000000000000000100000000000000020000000000000002000000000000000200000000000000020000000000000001000000000000000000000000000000');
INSERT INTO "counts" VALUES('skfbcfqqsjtjamyo',1,X'01000000000000000100000000000000');
INSERT INTO "counts" VALUES('va7owggv66skn4ag',0,X'210000000000000023000000000000001F0000000000000022000000000000001B00000000000000');
CREATE TABLE migrations (step INTEGER PRIMARY KEY);
INSERT INTO "migrations" VALUES(0);
CREATE TABLE progress (
            collection TEXT PRIMARY KEY REFERENCES collections (id), state TEXT NOT NULL,
            reports INTEGER NOT NULL, batches INTEGER NOT NULL);
INSERT INTO "progress" VALUES('tu6uua4cmfazbnsl','open',80,3);
INSERT INTO "progress" VALUES('kc2uxnd3eho6www7','open',80,3);
INSERT INTO "progress" VALUES('skfbcfqqsjtjamyo','open',3,3);
INSERT INTO "progress" VALUES('va7owggv66skn4ag','closed',80,3);
CREATE TABLE raw (
            collection TEXT NOT NULL, day INTEGER NOT NULL, number INTEGER NOT NULL, mixed INTEGER NOT NULL,
            reports BLOB NOT NULL, PRIMARY KEY (collection, day, number)) WITHOUT ROWID;
INSERT INTO "raw" VALUES('skfbcfqqsjtjamyo',20773,0,0,X'5346554D010000009B27C8BA9637EFA10BCC298CF21D2FE156BAA928BCA0F75C6CEACB353EB53FCB0100000000000000963721040500999032D2CD9CD8A08A7001');
INSERT INTO "raw" VALUES('skfbcfqqsjtjamyo',20773,1,0,X'5346554D010000009B27C8BA9637EFA10BCC298CF21D2FE156BAA928BCA0F75C6CEACB353EB53FCB01000000000000001B8935B031C901460951482C034EA33D00');
INSERT INTO "raw" VALUES('skfbcfqqsjtjamyo',20773,2,0,X'5346554D010000009B27C8BA9637EFA10BCC298CF21D2FE156BAA928BCA0F75C6CEACB353EB53FCB0100000000000000D66B430A4D222B064144EC161401930F02');
INSERT INTO "raw" VALUES('tu6uua4cmfazbnsl',20773,0,0,X'5346554D0100000089F5A5E70215004BC20E455CE482F9E861442333AC849A5FB396A298AB5CBEC53200000000000000638C31C618A594524A29A594528C31C618638C31C61883104208218410841002');
INSERT INTO "raw" VALUES('tu6uua4cmfazbnsl',20773,1,0,X'5346554D0100000089F5A5E70215004BC20E455CE482F9E861442333AC849A5FB396A298AB5CBEC51D00000000000000638C31C618A594528A31C61863104208410801');
INSERT INTO "raw" VALUES('tu6uua4cmfazbnsl',20773,2,0,X'5346554D0100000089F5A5E70215004BC20E455CE482F9E861442333AC849A5FB396A298AB5CBEC5010000000000000003');
INSERT INTO "raw" VALUES('va7owggv66skn4ag',20773,0,1,X'5346554D010000002FD836DF1665010149F8FCC454664B54AF8F6840184A2795A417F4D44266E9BA5000000000000000638C31C6186394524A29A594628C31C61863524A2925A594524A31C618638C31C6628C31C628A594524A2929C618638C31C6');
CREATE TABLE recent (number INTEGER PRIMARY KEY AUTOINCREMENT, records BLOB NOT NULL);
INSERT INTO "recent" VALUES(1,X'86704313B0989C289F13BED354A1449D711F4ACEBAB4F35C96102FD5174CAB6E00000032');
INSERT INTO "recent" VALUES(2,X'BC4F846D295BD9297F9A1FA6421061FDB469A6C6E1CCEBA3F54E9205B2DD6AFD0000001D');
INSERT INTO "recent" VALUES(3,X'FD96BC83E185AF58E337DFC675B3EFC134AD08BEBEDACB56A0ABB2788361AE5500000001');
INSERT INTO "recent" VALUES(4,X'342A4E978FB8A73DE2FDD264AE4A0B3689DE791110D9396B20E1CE92B9498A0A00000032');
INSERT INTO "recent" VALUES(5,X'E8970D601419B7D8DC62501C5B313A2F50AF6BB05BC36CA8FDB30F8309021F360000001D');
INSERT INTO "recent" VALUES(6,X'80F01A42D7A64BB9D549B7412F333471E3E96583416E16E09B58E464C6ED200700000001');
INSERT INTO "recent" VALUES(7,X'76E089213C96D5680ABDCA88A80B3F13DB1EB5D314EF8B83AAB666C3CC6779B200000001');
INSERT INTO "recent" VALUES(8,X'AF2D14114664C082420928C0C9F930C53F2289F55BB5EFB8C71B47A836964C3D00000001');
INSERT INTO "recent" VALUES(9,X'ED061E467F5ED81DDFAD5779A7C9BA5B3E133EC10A2C6DF313FF886609F0984F00000001');
INSERT INTO "recent" VALUES(10,X'C42E2007B5CF585B303398602027A25FCCA8F2C706A62E52041772301B95AAFA00000032');
INSERT INTO "recent" VALUES(11,X'5DA1300BF5636AA29179FAB7A32988EE0293AECBD2AD7F5FE8F9095DDCBA01280000001D');
INSERT INTO "recent" VALUES(12,X'5385881E33C3A691FE462E9EAC0BD3EB6E15C2AD34A00BE4BBBD4FCE236AF95B00000001');
CREATE TABLE tokens (
            collection TEXT NOT NULL REFERENCES collections (id), token_hash BLOB NOT NULL, spent INTEGER NOT NULL,
            PRIMARY KEY (collection, token_hash));
INSERT INTO "tokens" VALUES('skfbcfqqsjtjamyo',X'8BA7AAFF038D40F57315E3AABDFB8A39A799B31C21479C37EEDF1B506A642D07',1);
INSERT INTO "tokens" VALUES('skfbcfqqsjtjamyo',X'61AEE79BBE8BA40D13A120C94CB5AADE783F6DB3AC69CA3F82804E740480A537',1);
INSERT INTO "tokens" VALUES('skfbcfqqsjtjamyo',X'A90C21EAA3DE16F2286C24A7CFDF584BE2D1864518212CEB3745BC84CCC2B5C2',1);
INSERT INTO "tokens" VALUES('skfbcfqqsjtjamyo',X'939928B94930D1CCCE9AEF739EDC2FB4ED4903F557ECE6D205ED73ABB9F70027',0);
INSERT INTO "tokens" VALUES('skfbcfqqsjtjamyo',X'8DF230CAE1A233FE14B43225C2D345F838643E6043A4099BEF48C88D078D807A',0);
CREATE INDEX unmixed ON raw (day, collection, number) WHERE mixed = 0;
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('collections',4);
INSERT INTO "sqlite_sequence" VALUES('recent',12);
COMMIT;
