/** Texts to try the page with, made up for this purpose. */
export const EXAMPLES = [
  {
    name: "News",
    language: "en",
    overlap: "flat",
    labels: ["person", "organization", "city", "country", "date"],
    texts: [
      "Elena Marchetti, who has led the marine laboratory of the University of Bergen since 2014, will move to Lisbon " +
        "in September. The Portuguese foundation Mar Aberto pays for her new group of twelve people.\n\n" +
        "“Norway taught me patience,” she told reporters in Oslo on Monday. Her successor, Jonas Lie, comes from " +
        "Statkraft, where he planned wind farms in Scotland and Brazil.",
    ],
  },
  {
    name: "Medicine",
    language: "en",
    overlap: "nested",
    labels: [
      { name: "drug", description: "a medicine or active substance" },
      { name: "dose", examples: ["take [[40 mg]] daily", "[[two tablets]] at night"] },
      "disease",
      "symptom",
      "body part",
    ],
    texts: [
      "The patient, aged 61, came in with chest pain and shortness of breath. She takes 5 mg of ramipril every morning " +
        "for high blood pressure and 20 mg of atorvastatin at night. A chest X-ray showed no pneumonia. We added 75 mg " +
        "of clopidogrel and asked her to stop ibuprofen because of her stomach ulcer.",
    ],
  },
  {
    name: "Biology",
    language: "en",
    overlap: "nested",
    labels: ["gene", "protein", "disease", "body part", "species"],
    texts: [
      "The IL-2 receptor alpha promoter and the human p53 gene were studied in mice with lung cancer. Binding of the " +
        "NF-kappa B p65 subunit raised the level of interleukin 6 mRNA in human T cells, whereas mutations of the " +
        "BRCA1 gene promoter had no effect on chronic kidney disease.",
    ],
  },
  {
    name: "新闻",
    language: "zh",
    overlap: "nested",
    labels: ["人名", "组织", "城市", "地区", "职位"],
    texts: [
      "海洋科学研究院院长林晓梅离开北京，到上海市浦东新区的远帆创新科技有限公司担任研究员。她毕业于浙江大学，" +
        "导师是陈国栋教授。\n\n今年三月，该公司与广州大学第一附属医院签署合作协议，林晓梅将负责在广东省深圳市南山区新建的实验室。",
    ],
  },
  {
    name: "生僻字 😀",
    language: "zh",
    overlap: "flat",
    labels: ["人名", "地名", "机构"],
    texts: ["😀 昨天，欧阳喆和𠮷田太郎在上海𣸣湖边见面 😊，随后一起参观了复旦大学。𠮷田先生来自东京。"],
  },
];
